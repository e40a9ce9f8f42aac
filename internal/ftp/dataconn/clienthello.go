package dataconn

import (
	"fmt"
	"net"

	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// errClientHello reports that a client has begun TLS under PROT C.
var errClientHello = fmt.Errorf("%w: a ClientHello under PROT C", ErrTLS)

// A clearUpload is the data connection of an upload under PROT C in a session
// under TLS. A client that takes PROT P for the default begins a handshake
// there, which must not be stored as a file.
type clearUpload struct {
	net.Conn
	head    []byte // what has been read and not yet handed out
	checked bool
}

// Read returns errClientHello where the data begin with a handshake.
func (c *clearUpload) Read(b []byte) (int, error) {
	if !c.checked {
		if err := c.check(); err != nil {
			return 0, err
		}
	}
	if len(c.head) > 0 {
		n := copy(b, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// check reads as many bytes as it takes to tell a ClientHello from a file.
func (c *clearUpload) check() error {
	head := make([]byte, clientHelloHead)
	n := 0
	for n < len(head) && mayBeClientHello(head[:n]) {
		more, err := c.Conn.Read(head[n:])
		n += more
		if err != nil && n == 0 {
			return err
		}
		if err != nil {
			break // the next Read returns it again
		}
	}
	if n == len(head) && mayBeClientHello(head) {
		return errClientHello
	}
	c.head, c.checked = head[:n], true
	return nil
}

// clientHelloHead is how many bytes tell a ClientHello: the header of a record,
// and the type of the message in it.
const clientHelloHead = wire.RecordHeader + 1

// mayBeClientHello says whether data with this beginning may be a ClientHello
// (RFC 8446 4 and 5.1). Clients write the version of TLS 1.0, 1.1 or 1.2 there.
func mayBeClientHello(head []byte) bool {
	const handshake, major, clientHello = 22, 3, 1
	for i, b := range head {
		possible := true
		switch i {
		case 0:
			possible = b == handshake
		case 1:
			possible = b == major
		case 2:
			possible = 1 <= b && b <= 3
		case wire.RecordHeader:
			possible = b == clientHello
		}
		if !possible {
			return false
		}
	}
	return true
}
