package relay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/babelftp/babelftp/internal/base/contract"
)

// headerTimeout is how long a header may take. Senders write it at once, and it may be lost and sent again once
// (section 2 of the protocol asks for 3 seconds at least).
const headerTimeout = 5 * time.Second

// errNoHeader reports a connection without a header, or with one that cannot be used.
var errNoHeader = errors.New("no PROXY header")

// errClosed reports a connection that has ended before its first byte. Load balancers look so whether a port is open.
// Or this server has closed it.
var errClosed = errors.New("closed before a PROXY header")

// A proxyConn is a connection whose addresses are those of its header.
type proxyConn struct {
	net.Conn
	reader *bufio.Reader
	header *proxyproto.Header
}

// readHeader reads the header of a connection, which must come in time. A header without addresses (LOCAL, UNKNOWN)
// leaves those of the connection: a load balancer has opened it for itself. After an error the caller closes the
// connection.
func readHeader(conn net.Conn) (*proxyConn, error) {
	_ = conn.SetReadDeadline(time.Now().Add(headerTimeout))
	c := &proxyConn{Conn: conn, reader: bufio.NewReader(conn)}
	if _, err := c.reader.Peek(1); errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, net.ErrClosed) {
		return nil, errClosed
	}
	awaitLine(c.reader)
	var err error
	if c.header, err = proxyproto.Read(c.reader); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoHeader, err)
	}
	if _, _, ok := c.header.TCPAddrs(); !ok && c.isProxied() {
		return nil, fmt.Errorf("%w of TCP", errNoHeader)
	}
	_ = conn.SetReadDeadline(time.Time{})
	return c, nil
}

// maxLine is the most bytes of a header of version 1, with CRLF (section 2.1).
const maxLine = 107

// awaitLine waits until all of a header of version 1 is in the buffer. Section 2 recommends to take one that comes in
// pieces, and the library does not.
func awaitLine(r *bufio.Reader) {
	const begin = "PROXY "
	for n := 1; n <= maxLine; n++ {
		line, err := r.Peek(n)
		if err != nil || line[n-1] == '\n' || n <= len(begin) && line[n-1] != begin[n-1] {
			return // an error is one that the library meets too
		}
	}
}

// isProxied says whether the connection is that of a client. Else the load balancer has opened it for itself.
func (c *proxyConn) isProxied() bool { return c.header.Command.IsProxy() }

// relayValue is the value of relayType in the header (section 2.2), nil where there is none.
func (c *proxyConn) relayValue() []byte {
	tlvs, err := c.header.TLVs()
	if err != nil {
		return nil
	}
	for _, tlv := range tlvs {
		if tlv.Type == relayType {
			return tlv.Value
		}
	}
	return nil
}

// RemoteAddr is the address of the client.
func (c *proxyConn) RemoteAddr() net.Addr {
	if c.isProxied() {
		return c.header.SourceAddr
	}
	return c.Conn.RemoteAddr()
}

// LocalAddr is the address that the client has reached.
func (c *proxyConn) LocalAddr() net.Addr {
	if c.isProxied() {
		return c.header.DestinationAddr
	}
	return c.Conn.LocalAddr()
}

var _ contract.Inner = (*proxyConn)(nil)

// NetConn is the connection to the load balancer.
func (c *proxyConn) NetConn() net.Conn { return c.Conn }

// SyscallConn is the socket.
func (c *proxyConn) SyscallConn() (syscall.RawConn, error) {
	conn, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return conn.SyscallConn()
}

// Read reads what follows the header.
func (c *proxyConn) Read(b []byte) (int, error) {
	if c.reader == nil {
		return c.Conn.Read(b)
	}
	if c.reader.Buffered() > 0 {
		return c.reader.Read(b)
	}
	c.reader = nil // its memory is free
	return c.Conn.Read(b)
}

// relayHeader is a header of version 2 with the addresses of a client and of what it has reached, and the value of
// relayType.
func relayHeader(client, reached net.Addr, value []byte) ([]byte, error) {
	h := proxyproto.HeaderProxyFromAddrs(2, client, reached)
	if err := h.SetTLVs([]proxyproto.TLV{{Type: relayType, Value: value}}); err != nil {
		return nil, err
	}
	return h.Format()
}
