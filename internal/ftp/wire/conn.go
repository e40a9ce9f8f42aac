package wire

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/base/netaddr"
)

// replyTimeout bounds how long a client may leave a reply unread before its session ends.
const replyTimeout = time.Minute

// A Conn is a control connection, with or without TLS. One goroutine, which belongs to the session, writes to it
// and changes it; [Conn.Read] runs in a second one.
type Conn struct {
	tcp    net.Conn
	stream net.Conn // tcp, or TLS above it
	out    []byte   // buffered replies

	reader     *Reader       // reads from stream
	lines      chan *Line    // closed when Read returns
	resume     chan struct{} // lets Read continue after AUTH and REIN
	peerClosed chan struct{} // closed when the client has closed its side
}

// NewConn returns a control connection that uses a TCP connection.
func NewConn(tcp net.Conn) *Conn {
	keepUrgentData(tcp)
	return &Conn{
		tcp: tcp, stream: tcp, reader: NewReader(tcp),
		lines: make(chan *Line), resume: make(chan struct{}), peerClosed: make(chan struct{}),
	}
}

// Read sends command lines to Lines until the client closes its side of the connection or done is closed. After
// AUTH and REIN, which may start or stop TLS, it waits for [Conn.Resume].
func (c *Conn) Read(done <-chan struct{}) {
	defer close(c.lines)
	defer close(c.peerClosed)
	for {
		next := c.reader.Next()
		if next.Err != nil && !errors.Is(next.Err, ErrLineTooLong) {
			return
		}
		select {
		case c.lines <- next:
		case <-done:
			return
		}
		if next.Foreign != "" {
			return
		}
		if !next.mayChangeTLS() {
			continue
		}
		select {
		case <-c.resume:
		case <-done:
			return
		}
	}
}

// mayChangeTLS reports whether the command may start or stop TLS.
func (l *Line) mayChangeTLS() bool {
	verb, _, _ := ParseCommand(l.Text)
	return verb == "AUTH" || verb == "REIN"
}

// Resume lets Read continue after the reply to AUTH or REIN.
func (c *Conn) Resume(line *Line, done <-chan struct{}) {
	if !line.mayChangeTLS() {
		return
	}
	select {
	case c.resume <- struct{}{}:
	case <-done:
	}
}

// Lines returns the channel of command lines.
func (c *Conn) Lines() <-chan *Line { return c.lines }

// Unfinished describes the incomplete command line. It is 0 if the client has not begun one.
func (c *Conn) Unfinished() Unfinished { return c.reader.Unfinished() }

// PeerClosed returns a channel that is closed when the client has closed its side of the connection.
func (c *Conn) PeerClosed() <-chan struct{} { return c.peerClosed }

// HungUp asks the kernel whether the client has disconnected. On a busy machine Read may notice it much later.
func (c *Conn) HungUp() bool { return hungUp(c.tcp) }

// Buffer adds bytes to the output buffer.
func (c *Conn) Buffer(b ...byte) { c.out = append(c.out, b...) }

// BufferReply adds a reply to the output buffer.
func (c *Conn) BufferReply(r Reply) { c.out = r.AppendTo(c.out) }

// Flush writes the output buffer. Read gets the same error if it fails.
func (c *Conn) Flush() error {
	b := c.out
	if c.out = b[:0]; cap(b) > MaxLine {
		c.out = nil // release the memory of a long help or status text
	}
	_ = c.stream.SetWriteDeadline(time.Now().Add(replyTimeout))
	_, err := c.stream.Write(b)
	return err
}

// LocalAddr returns the address that the client connected to. Behind a proxy it may not be an address of this
// machine.
func (c *Conn) LocalAddr() net.Addr { return c.tcp.LocalAddr() }

// RemoteAddr returns the address of the client.
func (c *Conn) RemoteAddr() net.Addr { return c.tcp.RemoteAddr() }

// Local returns the IP address that the client connected to.
func (c *Conn) Local() netip.Addr { return netaddr.Of(c.tcp.LocalAddr()) }

// Remote returns the IP address of the client.
func (c *Conn) Remote() netip.Addr { return netaddr.Of(c.tcp.RemoteAddr()) }

// Socket returns the local IP address of the TCP connection.
func (c *Conn) Socket() netip.Addr {
	if proxied, ok := c.tcp.(contract.Inner); ok {
		return netaddr.Of(proxied.NetConn().LocalAddr())
	}
	return c.Local()
}

// Close closes the connection. Under TLS it sends close_notify.
func (c *Conn) Close() {
	_ = c.stream.Close()
	c.Cut()
}

// Cut closes the TCP connection at once. Any goroutine may call it.
func (c *Conn) Cut() { _ = c.tcp.Close() }
