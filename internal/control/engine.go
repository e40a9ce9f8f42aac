package control

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	ftpserver "github.com/fclairamb/ftpserverlib"

	"github.com/babelftp/babelftp/internal/dataconn"
	"github.com/babelftp/babelftp/internal/wire"
)

// An engine is one ftpserverlib server that serves one session, so that each of
// its callbacks knows whom it is for. It speaks FTP to the session over a
// connection in memory, whose other end is an [engineConn].
//
// It is also the engine's way to the session: its main driver, and the listener
// that yields the one connection that the engine serves.
type engine struct {
	session  *session
	client   ftpserver.ClientContext
	accepted bool // the connection
	ports    dataconn.PortRange
	anyPort  bool // rather than one of ports

	commands chan string // without line ends
	replies  chan wire.Reply
	ctx      context.Context // of the connection
	hangUp   context.CancelCauseFunc
}

var (
	_ ftpserver.MainDriver                        = (*engine)(nil)
	_ ftpserver.MainDriverExtensionPassiveWrapper = (*engine)(nil)
	_ ftpserver.PasvPortGetter                    = (*engine)(nil)
	_ net.Listener                                = (*engine)(nil)
)

// Why the connection to an engine ends.
var (
	errEngineGone  = errors.New("the engine hung up")
	errEngineEnded = errors.New("the session has ended the engine")
)

// startEngine starts an engine and takes its greeting, which no client sees.
func (s *session) startEngine() error {
	e := &engine{session: s, ports: dataconn.DynamicPorts(), commands: make(chan string, 1), replies: make(chan wire.Reply)}
	e.ctx, e.hangUp = context.WithCancelCause(context.WithoutCancel(s.ctx)) // a session that is cut lets a command end
	server := ftpserver.NewFtpServer(e)
	server.Logger = slog.New(slog.DiscardHandler) // its own writes what it discards
	if err := server.ListenAndServe(); err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	if _, err := e.next(); err != nil {
		return err
	}
	s.engine = e
	return nil
}

// stopEngine ends the engine with its transfer and its login.
func (s *session) stopEngine() {
	if s.engine != nil {
		s.engine.hangUp(errEngineEnded)
		s.engine = nil
	}
}

// command sends the engine a command line. The one before has been answered.
func (e *engine) command(line string) error {
	select {
	case e.commands <- line:
		return nil
	case <-e.ctx.Done():
		return context.Cause(e.ctx)
	}
}

// next waits for a reply of the engine.
func (e *engine) next() (wire.Reply, error) {
	select {
	case r := <-e.replies:
		return r, nil
	case <-e.ctx.Done():
		return wire.Reply{}, context.Cause(e.ctx)
	}
}

// GetSettings turns off in the engine what the session does itself.
func (e *engine) GetSettings() (*ftpserver.Settings, error) {
	return &ftpserver.Settings{
		Listener:                 e,
		PassiveTransferPortRange: e,
		IdleTimeout:              math.MaxInt32, // seconds; the session watches
		ConnectionTimeout:        math.MaxInt32,
		DisableLISTArgs:          true,
		DisableActiveMode:        true,
		DefaultTransferType:      ftpserver.TransferTypeBinary, // what careless clients mean
		PasvConnectionsCheck:     ftpserver.IPMatchDisabled,    // the session has checked
	}, nil
}

// listen has the engine listen for a data connection. It takes that of the
// session instead, but tries no more than a few ports: when all are in use it is
// left to the kernel to find one. Where there is no descriptor for it, the engine
// lives on and the error is errCannotListen.
func (s *session) listen() error {
	err := s.silently("EPSV", 229)
	if err != nil {
		s.engine.anyPort = true
		err = s.silently("EPSV", 229)
		s.engine.anyPort = false
	}
	if err != nil && s.engine.ctx.Err() == nil {
		return errors.Join(errCannotListen, err)
	}
	return err
}

var errCannotListen = errors.New("the engine cannot listen")

// FetchNext returns a port for the engine to listen on, where nobody connects.
func (e *engine) FetchNext() (shown, listened int, ok bool) {
	if e.anyPort {
		return 0, 0, true
	}
	port := int(e.ports.Random())
	return port, port, true
}

// NumberAttempts leaves it to the engine how many ports it tries.
func (e *engine) NumberAttempts() int { return 0 }

// ClientConnected is called before the engine greets.
func (e *engine) ClientConnected(client ftpserver.ClientContext) (string, error) {
	e.client = client
	return "ready", nil
}

// ClientDisconnected has nothing to do: the session ends the engine.
func (e *engine) ClientDisconnected(ftpserver.ClientContext) {}

// AuthUser is called by PASS. The password does not go to the engine, because it
// need not be a line of text; the session has it.
func (e *engine) AuthUser(client ftpserver.ClientContext, _, _ string) (ftpserver.ClientDriver, error) {
	storage, home, err := e.session.authenticate()
	if err != nil {
		return nil, err
	}
	client.SetPath(escapePathname(home))
	return &engineFs{Storage: storage, session: e.session}, nil
}

// GetTLSConfig refuses: TLS is the session's.
func (e *engine) GetTLSConfig() (*tls.Config, error) {
	return nil, errors.ErrUnsupported
}

// WrapPassiveListener gives the engine the data connection of the transfer
// that is about to begin. Nobody connects to the engine's own listener, so it is
// closed at once and costs no descriptor. But before the engine accepts it sets a
// deadline on that listener, which therefore becomes the server's placeholder.
func (e *engine) WrapPassiveListener(own net.Listener) (net.Listener, error) {
	_ = own.Close()
	if tcp, ok := own.(*net.TCPListener); ok {
		placeholder, err := e.session.server.placeholder.get()
		if err != nil {
			return nil, err
		}
		*tcp = *placeholder
	}
	return &transferListener{engine: e, transfer: e.session.transfer}, nil
}

// Accept yields the connection, then says that the listener is closed, in the
// words that the engine takes for a regular end.
func (e *engine) Accept() (net.Conn, error) {
	if e.accepted {
		return nil, &net.OpError{Op: "accept", Net: "memory", Err: errListenerClosed}
	}
	e.accepted = true
	return &engineConn{engine: e, local: e.session.conn.LocalAddr(), remote: e.session.conn.RemoteAddr()}, nil
}

// errListenerClosed has the text that the engine compares.
var errListenerClosed = errors.New("use of closed network connection")

// Close does nothing: the session ends the connection.
func (e *engine) Close() error { return nil }

// Addr is the address that the client reached.
func (e *engine) Addr() net.Addr { return e.session.conn.LocalAddr() }

// An engineConn is the engine's end of the connection, with the addresses of the
// control connection. One goroutine of the engine reads, and one at a time writes.
type engineConn struct {
	engine        *engine
	local, remote net.Addr

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
		complete, err := addLine(&c.reply, strings.TrimSuffix(string(c.line), "\r"))
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
	select {
	case c.engine.replies <- r:
		return nil
	case <-c.engine.ctx.Done():
		return context.Cause(c.engine.ctx)
	}
}

// Close is the engine hanging up.
func (c *engineConn) Close() error {
	c.engine.hangUp(errEngineGone)
	return nil
}

// LocalAddr is the address that the client reached.
func (c *engineConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is the client's address.
func (c *engineConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline does nothing, nor do the others: the session watches.
func (c *engineConn) SetDeadline(time.Time) error      { return nil }
func (c *engineConn) SetReadDeadline(time.Time) error  { return nil }
func (c *engineConn) SetWriteDeadline(time.Time) error { return nil }

// addLine adds a line that the engine has written to its reply, and tells whether it is the last.
func addLine(r *wire.Reply, line string) (complete bool, err error) {
	if len(r.Lines) == 0 {
		if len(line) < 4 || line[3] != ' ' && line[3] != '-' {
			return false, fmt.Errorf("engine's reply without a code: %q", line)
		}
		if r.Code, err = strconv.Atoi(line[:3]); err != nil {
			return false, fmt.Errorf("engine's reply without a code: %q", line)
		}
	}
	if len(line) < 4 || line[:3] != strconv.Itoa(r.Code) {
		r.Lines = append(r.Lines, line)
		return false, nil
	}
	r.Lines = append(r.Lines, line[4:])
	return line[3] == ' ', nil
}

// transferListener is the listener from which the engine takes a transfer's
// data connection.
type transferListener struct {
	engine   *engine
	transfer *transfer
}

var _ net.Listener = (*transferListener)(nil)

func (l *transferListener) Accept() (net.Conn, error) { return l.transfer.Open(l.engine.session.ctx) }

// Close does nothing: the session closes what the transfer uses.
func (l *transferListener) Close() error { return nil }

// Addr is the address that the client reached.
func (l *transferListener) Addr() net.Addr { return l.engine.Addr() }
