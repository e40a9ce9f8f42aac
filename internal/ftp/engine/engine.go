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

	ftpserver "github.com/fclairamb/ftpserverlib"

	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// An Engine is the part of the library that serves one session. It speaks FTP to
// the session over a connection in memory, whose other end is an [engineConn].
type Engine struct {
	server *Server
	number uint64 // of the engines of the server
	login  func() (home string, err error)
	client ftpserver.ClientContext
	op     *Operation // the command that is running
	conn   engineConn

	commands chan string // without line ends
	replies  chan wire.Reply
	ctx      context.Context // of the connection
	hangUp   context.CancelCauseFunc
}

// Why the connection to an engine ends.
var (
	errEngineGone  = errors.New("the engine hung up")
	errEngineEnded = errors.New("the session has ended the engine")
)

// Start starts an engine, and takes its greeting, which no client sees. PASS comes
// next, without USER, and calls login, which returns the directory that
// the user starts in, an absolute pathname. The password does not go to the
// engine, because it need not be a line of text. The engine lives until Stop, also
// when ctx has ended, so that a command that is running can end.
func (s *Server) Start(ctx context.Context, login func() (home string, err error)) (*Engine, error) {
	if err := s.serve(); err != nil {
		return nil, err
	}
	e := &Engine{server: s, number: s.engines.Add(1), login: login, commands: make(chan string, 1),
		replies: make(chan wire.Reply)}
	e.ctx, e.hangUp = context.WithCancelCause(context.WithoutCancel(ctx))
	e.conn.engine = e
	select {
	case s.arrivals <- &e.conn:
	case <-s.closed:
		return nil, errServerEnded
	}
	_, err := e.next()
	return e, err
}

// Resume starts an engine for a user who has logged in before, in a working directory.
func (s *Server) Resume(ctx context.Context, directory string) (*Engine, error) {
	e, err := s.Start(ctx, func() (string, error) { return directory, nil })
	if err == nil {
		e.op = &Operation{}
		_, err = e.internalCommand("PASS", 230)
	}
	return e, err
}

// Stop ends the engine with its transfer and its login.
func (e *Engine) Stop() { e.hangUp(errEngineEnded) }

// Send gives the engine a command, perhaps with an argument. The one before has
// been answered. What the engine then asks of the storage is the operation's.
func (e *Engine) Send(op *Operation, verb, argument string) error {
	e.op = op
	line := verb
	if argument != "" {
		line += " " + escapeLine(argument)
	}
	return e.send(line)
}

// Release lets go of the operation of a command that has been answered.
func (e *Engine) Release() { e.op = nil }

// Replies are the engine's replies to the command that was sent. Where the client of a transfer has not connected when
// the file is open, there are two preliminary ones: the second says that it has connected.
func (e *Engine) Replies() <-chan wire.Reply { return e.replies }

// Done is closed when the engine has hung up, for the reason that Err returns.
func (e *Engine) Done() <-chan struct{} { return e.ctx.Done() }

// Err is why the engine has hung up.
func (e *Engine) Err() error { return context.Cause(e.ctx) }

// WorkingDirectory is the pathname that the engine keeps, and that of the login's
// home after PASS.
func (e *Engine) WorkingDirectory() string { return unescapeLine(e.client.Path()) }

// SetWorkingDirectory replaces it.
func (e *Engine) SetWorkingDirectory(name string) { e.client.SetPath(escapeLine(name)) }

// PrepareTransfer sets what the next command transfers. No other function does. So it replaces what the transfer
// before has left in the engine: the engine keeps an offset when a transfer does not begin, and has none under TYPE
// A. Where there is no descriptor for a data connection, the engine lives on and the error is [ErrCannotListen].
func (e *Engine) PrepareTransfer(op *Operation, offset int64, ascii bool) error {
	e.op = op
	_, err := e.internalCommand("REST "+strconv.FormatInt(offset, 10), 350)
	if err == nil {
		err = e.listen(op)
	}
	if err == nil && ascii {
		_, err = e.internalCommand("TYPE A", 200)
	}
	return err
}

// EndASCII ends TYPE A after a transfer. The outcome of that is decided, so an engine that fails here hangs up. The
// next command meets that.
func (e *Engine) EndASCII() {
	if _, err := e.internalCommand("TYPE I", 200); err != nil {
		e.hangUp(err)
	}
}

// internalCommand gives the engine a command of the session itself. Its reply is
// for no client.
func (e *Engine) internalCommand(line string, code int) (wire.Reply, error) {
	if err := e.send(line); err != nil {
		return wire.Reply{}, err
	}
	r, err := e.next()
	if err == nil && r.Code != code {
		err = fmt.Errorf("engine's reply to %s: %d %q", line, r.Code, r.Lines)
	}
	return r, err
}

// A pathname goes to the engine on one line. CR and LF in it are escaped by
// DLE, the control character made for that; clients and keys never see it so.
// The engine cleans pathnames, so the final slash of a directory is escaped too.
var (
	lineEscaper   = strings.NewReplacer("\x10", "\x10\x10", "\r", "\x10r", "\n", "\x10n")
	lineUnescaper = strings.NewReplacer("\x10\x10", "\x10", "\x10r", "\r", "\x10n", "\n", finalSlash, "/")
)

// finalSlash stands for the slash at the end of a pathname.
const finalSlash = "\x10s"

func escapeLine(name string) string {
	escaped := lineEscaper.Replace(name)
	if directory, ok := strings.CutSuffix(escaped, "/"); ok && directory != "" {
		return directory + finalSlash
	}
	return escaped
}

func unescapeLine(name string) string { return lineUnescaper.Replace(name) }

func (e *Engine) send(line string) error {
	select {
	case e.commands <- line:
		return nil
	case <-e.ctx.Done():
		return context.Cause(e.ctx)
	}
}

// next waits for a reply of the engine.
func (e *Engine) next() (wire.Reply, error) {
	select {
	case r := <-e.replies:
		return r, nil
	case <-e.ctx.Done():
		return wire.Reply{}, context.Cause(e.ctx)
	}
}

// listen has the engine take the data connection of the next transfer from the session.
func (e *Engine) listen(op *Operation) error {
	l, err := e.reserve()
	switch {
	case err != nil && e.ctx.Err() == nil:
		return errors.Join(ErrCannotListen, err)
	case err != nil:
		return err
	}
	l.engine, l.transfer, l.ctx = e, op.Transfer, op.Context
	return nil
}

// openAttempts is how many ports the library tries, because another program may take one first.
const openAttempts = 3

// reserve has the library offer a listener. Where the library does not listen itself yet, or no longer, it does so
// first, for one engine after another. Of two that open one port at once, one would find it in use.
func (e *Engine) reserve() (l *transferListener, err error) {
	s := e.server
	if s.listens.Load() {
		if l, err = e.passive(); err == nil || e.ctx.Err() != nil {
			return l, err
		}
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.listens.Load() { // again, by another engine
		if l, err = e.passive(); err == nil || e.ctx.Err() != nil {
			return l, err
		}
	}
	s.listens.Store(false)
	for range openAttempts {
		if err = s.choosePort(); err != nil {
			return nil, err
		}
		if l, err = e.passive(); err == nil || e.ctx.Err() != nil {
			s.listens.Store(err == nil)
			return l, err
		}
	}
	return nil, err
}

// passive sends EPSV, and returns the listener whose number is in the reply (RFC 2428 3).
func (e *Engine) passive() (*transferListener, error) {
	r, err := e.internalCommand("EPSV", 229)
	if err != nil {
		return nil, err
	}
	_, field, _ := strings.Cut(strings.Join(r.Lines, ""), "(|||")
	digits, _, _ := strings.Cut(field, "|)")
	number, err := strconv.Atoi(digits)
	if err != nil {
		return nil, fmt.Errorf("engine's reply to EPSV: %q", r.Lines)
	}
	l := e.server.take(number)
	if l == nil {
		return nil, fmt.Errorf("engine's reply to EPSV: no listener is number %d", number)
	}
	return l, nil
}

// ErrCannotListen reports a transfer for which the engine has no listener.
var ErrCannotListen = errors.New("the engine cannot listen")

// authenticate is PASS.
func (e *Engine) authenticate() (ftpserver.ClientDriver, error) {
	var home string
	err := e.op.apart(func() (err error) {
		home, err = e.login()
		return err
	})
	if err != nil {
		return nil, err
	}
	e.client.SetPath(escapeLine(home))
	return &engineFs{engine: e}, nil
}

// An engineConn is the engine's end of the connection. One goroutine of the
// engine reads, and only one writes.
type engineConn struct {
	engine *Engine

	unread string     // of the command that the engine is reading
	line   []byte     // the beginning of one that the engine has not ended
	reply  wire.Reply // the lines of one that the engine has not ended
}

var _ net.Conn = (*engineConn)(nil)

// Read gives the engine a command, or the rest of one.
func (c *engineConn) Read(b []byte) (int, error) {
	if c.unread == "" {
		select {
		case line := <-c.engine.commands:
			c.unread = line + "\r\n"
		case <-c.engine.ctx.Done():
			return 0, io.EOF
		}
	}
	n := copy(b, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

// Write takes what the engine writes, and hands each reply over when it is
// complete.
func (c *engineConn) Write(b []byte) (int, error) {
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
			err = c.handOver()
		}
		if err != nil {
			c.engine.hangUp(err)
			return 0, err
		}
	}
	return len(b), nil
}

func (c *engineConn) handOver() error {
	r := c.reply
	c.reply = wire.Reply{}
	return c.engine.answer(r)
}

// answer gives the session a reply.
func (e *Engine) answer(r wire.Reply) error {
	select {
	case e.replies <- r:
		return nil
	case <-e.ctx.Done():
		return context.Cause(e.ctx)
	}
}

// Close is the engine hanging up.
func (c *engineConn) Close() error {
	c.engine.hangUp(errEngineGone)
	return nil
}

// LocalAddr is no address that anything can reach.
func (c *engineConn) LocalAddr() net.Addr { return address{} }

// RemoteAddr leads to the engine.
func (c *engineConn) RemoteAddr() net.Addr { return address{c.engine} }

// SetDeadline does nothing, nor do the others: the session watches.
func (c *engineConn) SetDeadline(time.Time) error      { return nil }
func (c *engineConn) SetReadDeadline(time.Time) error  { return nil }
func (c *engineConn) SetWriteDeadline(time.Time) error { return nil }

// transferListener is the listener from which the engine takes a transfer's
// data connection.
type transferListener struct {
	server   *Server
	number   int
	engine   *Engine // set by the session, like the rest, before the command that transfers
	transfer *dataconn.Transfer
	ctx      context.Context
}

var _ net.Listener = (*transferListener)(nil)

// Accept waits for the data connection. A client that has not connected may wait for 150, which says that the server is
// about to open the data connection (RFC 959 4.2.2). So a 150 comes from here, and the engine's is the second.
func (l *transferListener) Accept() (net.Conn, error) {
	return l.transfer.Open(l.ctx, func() {
		_ = l.engine.answer(wire.NewReply(150)) // an engine that has ended opens nothing
	})
}

// Close forgets a listener that no session has taken. The session closes what the transfer uses.
func (l *transferListener) Close() error {
	l.server.take(l.number)
	return nil
}

// Addr has the number as a port, for the reply to EPSV.
func (l *transferListener) Addr() net.Addr { return &net.TCPAddr{Port: l.number} }
