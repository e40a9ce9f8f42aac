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

// A conn is the connection in memory to one session of the library: its net.Conn, and the functions by which an
// engine sends commands and waits for replies.
type conn struct {
	server *Server
	number uint64     // unique on the server
	op     *Operation // that is running
	ascii  bool       // the library's session has TYPE A

	commands chan string // without line ends
	replies  chan wire.Reply
	ctx      context.Context // ends with the connection
	hangUp   context.CancelCauseFunc

	// Of the library's goroutines: only one of them reads, and only one writes.
	unread string     // the part of a command that the library has not read yet
	line   []byte     // the beginning of a line that the library has not ended
	reply  wire.Reply // the lines of a reply that the library has not ended
}

var _ net.Conn = (*conn)(nil)

func (s *Server) newConn(ctx context.Context) *conn {
	c := &conn{server: s, number: s.conns.Add(1), commands: make(chan string, 1), replies: make(chan wire.Reply)}
	c.ctx, c.hangUp = context.WithCancelCause(context.WithoutCancel(ctx))
	return c
}

// logIn hands the connection to the library, which greets, and sends PASS, to which the library needs no USER. The
// library gets the driver without a password, because the session has authenticated the user.
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

// expect sends a command of the engine itself, whose reply must have this code.
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

// Read gives the library a command, or the rest of one.
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

// Write takes what the library writes, and passes on each complete reply but 150: the session writes its own when the
// data connection opens.
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
			err = c.passOn()
		}
		if err != nil {
			c.hangUp(err)
			return 0, err
		}
	}
	return len(b), nil
}

func (c *conn) passOn() error {
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

// RemoteAddr returns an address from which the callbacks of the library find the connection.
func (c *conn) RemoteAddr() net.Addr { return address{c} }

// SetDeadline and its siblings do nothing: the session watches the time.
func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// listen makes the library take the data connection of the next transfer from the session.
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

// openAttempts is how many ports the library tries, because another program may take one first.
const openAttempts = 3

// reserve makes the library offer a listener. If the library itself does not listen yet, or no longer does, it begins
// to, for one connection at a time: two that open the same port at once would find it in use.
func (c *conn) reserve() (l *transferListener, err error) {
	s := c.server
	if s.listens.Load() {
		if l, err = c.passive(); err == nil || c.ctx.Err() != nil {
			return l, err
		}
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.listens.Load() { // another connection has opened the port meanwhile
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

// passive sends EPSV, and returns the listener whose number is in the reply (RFC 2428 3).
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

// A transferListener is the listener from which the library takes the data connection of a transfer.
type transferListener struct {
	server *Server
	number int
	op     *Operation // set before the command that transfers
}

var _ net.Listener = (*transferListener)(nil)

// Accept waits for the data connection.
func (l *transferListener) Accept() (net.Conn, error) {
	opened, err := l.op.Transfer.Open(l.op.Context, l.op.Starting)
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// Close forgets a listener that no engine has taken. The session closes what the transfer uses.
func (l *transferListener) Close() error {
	l.server.take(l.number)
	return nil
}

// Addr has the number as a port, for the reply to EPSV.
func (l *transferListener) Addr() net.Addr { return &net.TCPAddr{Port: l.number} }
