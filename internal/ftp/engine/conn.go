package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// A conn is the in-memory connection to one session of the library. To the library it is a net.Conn. The engine
// uses it to send commands and to wait for replies.
type conn struct {
	server *Server
	number uint64     // unique per server
	op     *Operation // running operation
	ascii  bool       // the session of the library has TYPE A

	commands chan string // without line ends
	replies  chan wire.Reply
	ctx      context.Context // canceled when the connection ends
	hangUp   context.CancelCauseFunc

	// Only one goroutine of the library reads, and only one writes.
	unread string     // the rest of the command that the library is reading
	line   []byte     // beginning of an incomplete reply line
	reply  wire.Reply // lines of an incomplete reply
}

var _ net.Conn = (*conn)(nil)

func (s *Server) newConn(ctx context.Context) *conn {
	c := &conn{server: s, number: s.conns.Add(1), commands: make(chan string, 1), replies: make(chan wire.Reply)}
	c.ctx, c.hangUp = context.WithCancelCause(context.WithoutCancel(ctx))
	return c
}

// logIn passes the connection to the library, which sends its greeting, and sends PASS. The library needs no USER
// and no password, because the session has authenticated the user.
func (c *conn) logIn() error {
	if err := c.server.serve(); err != nil {
		return err
	}
	select {
	case c.server.arrivals <- c:
	case <-c.server.closed:
		return errServerClosed
	}
	if _, err := c.next(); err != nil {
		return err
	}
	return c.expect("PASS", 230)
}

// expect sends a command and checks the code of its reply.
func (c *conn) expect(line string, code int) error {
	r, err := c.exchange(line)
	if err == nil && r.Code != code {
		err = fmt.Errorf("reply to %s: %v", line, r)
	}
	return err
}

// exchange sends a command and returns the reply.
func (c *conn) exchange(line string) (wire.Reply, error) {
	select {
	case c.commands <- line:
		return c.next()
	case <-c.ctx.Done():
		return wire.Reply{}, context.Cause(c.ctx)
	}
}

// next waits for a reply of the library.
func (c *conn) next() (wire.Reply, error) {
	select {
	case r := <-c.replies:
		return r, nil
	case <-c.ctx.Done():
		return wire.Reply{}, context.Cause(c.ctx)
	}
}

// Read returns a command, or the rest of one, to the library.
func (c *conn) Read(b []byte) (int, error) {
	if c.unread == "" {
		select {
		case line := <-c.commands:
			c.unread = line + "\r\n"
		case <-c.ctx.Done():
			return 0, io.EOF
		}
	}
	n := copy(b, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

// Write parses the replies of the library and delivers each complete reply except 150, because the session sends
// its own 150 when the data connection is open.
func (c *conn) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		c.line = append(c.line, line...)
		if !ended {
			break
		}
		rest = after
		complete, err := c.reply.AddLine(strings.TrimSuffix(string(c.line), "\r"))
		c.line = c.line[:0]
		if err == nil && complete {
			err = c.deliver()
		}
		if err != nil {
			c.hangUp(err)
			return 0, err
		}
	}
	return len(b), nil
}

func (c *conn) deliver() error {
	r := c.reply
	c.reply = wire.Reply{}
	if r.Preliminary() {
		return nil
	}
	select {
	case c.replies <- r:
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// Close is called by the library when its session ends.
func (c *conn) Close() error {
	c.hangUp(errHungUp)
	return nil
}

// LocalAddr returns an address that cannot be reached.
func (c *conn) LocalAddr() net.Addr { return address{} }

// RemoteAddr returns an address that leads the callbacks of the library to the connection.
func (c *conn) RemoteAddr() net.Addr { return address{c} }

// SetDeadline and its siblings do nothing, because the session handles timeouts.
func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// listen makes the library use the data connection of op for the next transfer.
func (c *conn) listen(op *Operation) error {
	l, err := c.reserve()
	switch {
	case err != nil && c.ctx.Err() == nil:
		return fmt.Errorf("%w: %w", ErrCannotListen, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	l.op = op
	return nil
}

// openAttempts limits how many ports the library tries, because other programs may take a port first.
const openAttempts = 3

// reserve makes the library offer a listener. If the library itself does not listen yet, or no longer listens, it
// starts to listen, for one connection at a time, because concurrent attempts would find the port in use.
func (c *conn) reserve() (l *transferListener, err error) {
	s := c.server
	if s.listens.Load() {
		if l, err = c.passive(); err == nil || c.ctx.Err() != nil {
			return l, err
		}
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.listens.Load() { // another connection has opened the port
		if l, err = c.passive(); err == nil || c.ctx.Err() != nil {
			return l, err
		}
	}
	s.listens.Store(false)
	for range openAttempts {
		if err = s.choosePort(); err != nil {
			return nil, err
		}
		if l, err = c.passive(); err == nil || c.ctx.Err() != nil {
			s.listens.Store(err == nil)
			return l, err
		}
	}
	return nil, err
}

// passive sends EPSV and returns the listener with the number in the reply (RFC 2428, 3).
func (c *conn) passive() (*transferListener, error) {
	r, err := c.exchange("EPSV")
	if err != nil {
		return nil, err
	}
	_, field, _ := strings.Cut(strings.Join(r.Lines, ""), "(|||")
	digits, _, _ := strings.Cut(field, "|)")
	number, err := strconv.Atoi(digits)
	if err != nil || r.Code != 229 {
		return nil, fmt.Errorf("reply to EPSV: %v", r)
	}
	l := c.server.take(number)
	if l == nil {
		return nil, errors.New("reply to EPSV: unknown listener " + digits)
	}
	return l, nil
}

// A transferListener provides the data connection of a transfer to the library.
type transferListener struct {
	server *Server
	number int
	op     *Operation // set before the transfer command
}

var _ net.Listener = (*transferListener)(nil)

// Accept opens the data connection.
func (l *transferListener) Accept() (net.Conn, error) {
	opened, err := l.op.Transfer.Open(l.op.Context, l.op.Starting)
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// Close discards a listener that no engine has taken. The session closes the data connection.
func (l *transferListener) Close() error {
	l.server.take(l.number)
	return nil
}

// Addr returns the number of the listener as a port, which appears in the reply to EPSV.
func (l *transferListener) Addr() net.Addr { return &net.TCPAddr{Port: l.number} }
