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

// headerTimeout bounds the time until a header has arrived. Senders write it at once, but a packet may be lost
// (section 2 of the protocol requires at least 3 seconds).
const headerTimeout = 5 * time.Second

// errNoHeader reports a connection whose header is missing or unusable.
var errNoHeader = errors.New("no PROXY header")

// errClosed reports a connection that ended before its first byte. Load balancers check open ports this way. It
// also reports connections that this server has closed.
var errClosed = errors.New("closed before a PROXY header")

// A proxyConn is a connection with the addresses of its header.
type proxyConn struct {
	net.Conn
	reader *bufio.Reader
	header *proxyproto.Header
}

// readHeader reads the header of a connection. A header without addresses (LOCAL, UNKNOWN) means that the load
// balancer itself opened the connection, which then keeps its own addresses. After an error the caller must close
// the connection.
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
		return nil, fmt.Errorf("%w with TCP addresses", errNoHeader)
	}
	_ = conn.SetReadDeadline(time.Time{})
	return c, nil
}

// maxLine is the maximum length of a header of version 1, including CRLF (section 2.1).
const maxLine = 107

// awaitLine waits until the whole header of version 1 is in the buffer. Section 2 recommends to accept headers
// that arrive in pieces, which the library does not do.
func awaitLine(r *bufio.Reader) {
	const begin = "PROXY "
	for n := 1; n <= maxLine; n++ {
		line, err := r.Peek(n)
		if err != nil || line[n-1] == '\n' || n <= len(begin) && line[n-1] != begin[n-1] {
			return // the library gets the same error
		}
	}
}

// isProxied reports whether the connection belongs to a client and not to the load balancer itself.
func (c *proxyConn) isProxied() bool { return c.header.Command.IsProxy() }

// relayValue returns the value of relayType in the header (section 2.2), or nil.
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

// RemoteAddr returns the address of the client.
func (c *proxyConn) RemoteAddr() net.Addr {
	if c.isProxied() {
		return c.header.SourceAddr
	}
	return c.Conn.RemoteAddr()
}

// LocalAddr returns the address that the client connected to.
func (c *proxyConn) LocalAddr() net.Addr {
	if c.isProxied() {
		return c.header.DestinationAddr
	}
	return c.Conn.LocalAddr()
}

var _ contract.Inner = (*proxyConn)(nil)

// NetConn returns the underlying connection.
func (c *proxyConn) NetConn() net.Conn { return c.Conn }

// SyscallConn returns the socket.
func (c *proxyConn) SyscallConn() (syscall.RawConn, error) {
	conn, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return conn.SyscallConn()
}

// Read reads the data after the header.
func (c *proxyConn) Read(b []byte) (int, error) {
	if c.reader == nil {
		return c.Conn.Read(b)
	}
	if c.reader.Buffered() > 0 {
		return c.reader.Read(b)
	}
	c.reader = nil // release the buffer
	return c.Conn.Read(b)
}

// relayHeader returns a header of version 2 with the address of a client, the address it connected to, and the
// value of relayType.
func relayHeader(client, reached net.Addr, value []byte) ([]byte, error) {
	h := proxyproto.HeaderProxyFromAddrs(2, client, reached)
	if err := h.SetTLVs([]proxyproto.TLV{{Type: relayType, Value: value}}); err != nil {
		return nil, err
	}
	return h.Format()
}
