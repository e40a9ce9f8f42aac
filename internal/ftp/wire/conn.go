package wire

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/base/netaddr"
)

// replyTimeout is how long a client may leave a reply unread before its
// session ends.
const replyTimeout = time.Minute

// A Conn is a control connection, in the clear or under TLS. One goroutine, the
// session's, writes and changes it; [Conn.Read] is for a second one.
type Conn struct {
	tcp    net.Conn
	stream net.Conn // what replies are written to: tcp, or TLS above it
	out    []byte   // replies that are not written yet

	reader     *Reader       // of stream
	lines      chan *Line    // closed when Read returns
	resume     chan struct{} // lets Read continue after AUTH and REIN
	peerClosed chan struct{} // closed when the client's side has ended
}

// NewConn makes a control connection of a TCP connection.
func NewConn(tcp net.Conn) *Conn {
	keepUrgentData(tcp)
	return &Conn{
		tcp: tcp, stream: tcp, reader: NewReader(tcp),
		lines: make(chan *Line), resume: make(chan struct{}), peerClosed: make(chan struct{}),
	}
}

// Read hands over command lines until the client's side of the connection ends,
// or done does. After AUTH and REIN, which may change what is below, it waits
// for [Conn.Resume].
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
		if next.Foreign == ForeignTLS {
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

// mayChangeTLS says whether the command may begin or end TLS.
func (l *Line) mayChangeTLS() bool {
	verb, _, _ := ParseCommand(l.Text)
	return verb == "AUTH" || verb == "REIN"
}

// Resume lets Read continue after the reply to AUTH or REIN.
func (c *Conn) Resume(answered *Line, done <-chan struct{}) {
	if !answered.mayChangeTLS() {
		return
	}
	select {
	case c.resume <- struct{}{}:
	case <-done:
	}
}

// Lines are the command lines that Read hands over.
func (c *Conn) Lines() <-chan *Line { return c.lines }

// Unfinished describes the command line whose end has not arrived, 0 for no such line.
func (c *Conn) Unfinished() Unfinished { return c.reader.Unfinished() }

// PeerClosed is closed when the client's side of the connection has ended.
func (c *Conn) PeerClosed() <-chan struct{} { return c.peerClosed }

// HungUp asks the kernel for the same. On a busy machine Read may learn of it
// much later.
func (c *Conn) HungUp() bool { return hungUp(c.tcp) }

// Buffer keeps bytes, to be written together with the next.
func (c *Conn) Buffer(b ...byte) { c.out = append(c.out, b...) }

// BufferReply keeps a reply, to be written together with the next.
func (c *Conn) BufferReply(r Reply) { c.out = r.AppendTo(c.out) }

// Flush writes what is kept. An error is one that Read meets too.
func (c *Conn) Flush() error {
	b := c.out
	if c.out = b[:0]; cap(b) > MaxLine {
		c.out = nil // a long help or status text is no reason to keep its memory
	}
	_ = c.stream.SetWriteDeadline(time.Now().Add(replyTimeout))
	_, err := c.stream.Write(b)
	return err
}

// LocalAddr is the address that the client has reached. Behind a proxy it may not be one of this machine.
func (c *Conn) LocalAddr() net.Addr { return c.tcp.LocalAddr() }

// RemoteAddr is the client's address.
func (c *Conn) RemoteAddr() net.Addr { return c.tcp.RemoteAddr() }

// Local is the IP address that the client has reached.
func (c *Conn) Local() netip.Addr { return netaddr.Of(c.tcp.LocalAddr()) }

// Remote is the client's IP address.
func (c *Conn) Remote() netip.Addr { return netaddr.Of(c.tcp.RemoteAddr()) }

// Socket is the IP address of this machine to which the connection is.
func (c *Conn) Socket() netip.Addr {
	if proxied, ok := c.tcp.(contract.Inner); ok {
		return netaddr.Of(proxied.NetConn().LocalAddr())
	}
	return c.Local()
}

// Close closes the connection, under TLS with close_notify.
func (c *Conn) Close() {
	_ = c.stream.Close()
	c.Cut()
}

// Cut closes the TCP connection at once. Any goroutine may call it.
func (c *Conn) Cut() { _ = c.tcp.Close() }
