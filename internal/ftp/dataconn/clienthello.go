package dataconn

import (
	"fmt"
	"net"

	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// errClientHello reports that a client started TLS under PROT C.
var errClientHello = fmt.Errorf("%w: a ClientHello under PROT C", ErrTLS)

// A clearUpload is the data connection of an upload under PROT C in a session with TLS. A client that assumes PROT
// P starts a handshake on it, which must not be stored as a file.
type clearUpload struct {
	net.Conn
	head    []byte // bytes read by check but not returned yet
	checked bool
}

// Read returns errClientHello if the data begins with a TLS handshake.
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

// check reads as many bytes as it needs to distinguish a ClientHello from a file.
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

// clientHelloHead is the number of bytes that identify a ClientHello: the record header and the message type.
const clientHelloHead = wire.RecordHeader + 1

// mayBeClientHello reports whether data that begins with head may be a ClientHello (RFC 8446, 4 and 5.1). The
// record version is TLS 1.0, 1.1 or 1.2.
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
