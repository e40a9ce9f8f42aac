package engine

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

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// Config is what an engine needs to know of its session.
type Config struct {
	Local, Remote net.Addr // of the control connection
	// Login is called by PASS. It returns the directory that the user starts in, an
	// absolute pathname. The password does not go to the engine, because it need not
	// be a line of text.
	Login       func() (home string, err error)
	Placeholder *Placeholder
}

// An Engine is one ftpserverlib server that serves one session, so that each of
// its callbacks knows whom it is for. It speaks FTP to the session over a
// connection in memory, whose other end is an [engineConn].
//
// It is also the engine's way to the session: its main driver, and the listener
// that yields the one connection that the engine serves.
type Engine struct {
	cfg      Config
	client   ftpserver.ClientContext
	op       *Operation // the command that is running
	accepted bool       // the connection
	ports    netaddr.PortRange
	anyPort  bool // rather than one of ports

	commands chan string // without line ends
	replies  chan wire.Reply
	ctx      context.Context // of the connection
	hangUp   context.CancelCauseFunc
}

var (
	_ ftpserver.MainDriver                        = (*Engine)(nil)
	_ ftpserver.MainDriverExtensionPassiveWrapper = (*Engine)(nil)
	_ ftpserver.PasvPortGetter                    = (*Engine)(nil)
	_ net.Listener                                = (*Engine)(nil)
)

// Why the connection to an engine ends.
var (
	errEngineGone  = errors.New("the engine hung up")
	errEngineEnded = errors.New("the session has ended the engine")
)

// Start starts an engine, and takes its greeting and its reply to USER, which no
// client sees. PASS comes next. The engine lives until Stop: the end of ctx lets
// a command end that is running.
func Start(ctx context.Context, cfg Config) (*Engine, error) {
	e := &Engine{cfg: cfg, ports: netaddr.DynamicPorts(), commands: make(chan string, 1),
		replies: make(chan wire.Reply)}
	e.ctx, e.hangUp = context.WithCancelCause(context.WithoutCancel(ctx))
	server := ftpserver.NewFtpServer(e)
	server.Logger = slog.New(slog.DiscardHandler) // its own writes what it discards
	if err := server.ListenAndServe(); err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	if _, err := e.next(); err != nil {
		return nil, err
	}
	return e, e.internalCommand("USER", 331)
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

// Replies are the engine's replies to the command that was sent.
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
	err := e.internalCommand("REST "+strconv.FormatInt(offset, 10), 350)
	if err == nil {
		err = e.listen()
	}
	if err == nil && ascii {
		err = e.internalCommand("TYPE A", 200)
	}
	return err
}

// EndASCII ends TYPE A after a transfer. The outcome of that is decided, so an engine that fails here hangs up. The
// next command meets that.
func (e *Engine) EndASCII() {
	if err := e.internalCommand("TYPE I", 200); err != nil {
		e.hangUp(err)
	}
}

// internalCommand gives the engine a command of the session itself. Its reply is
// for no client.
func (e *Engine) internalCommand(line string, code int) error {
	if err := e.send(line); err != nil {
		return err
	}
	r, err := e.next()
	if err != nil {
		return err
	}
	if r.Code != code {
		return fmt.Errorf("engine's reply to %s: %d %q", line, r.Code, r.Lines)
	}
	return nil
}

// A pathname goes to the engine on one line. CR and LF in it are escaped by
// DLE, the control character made for that; clients and keys never see it so.
var (
	lineEscaper   = strings.NewReplacer("\x10", "\x10\x10", "\r", "\x10r", "\n", "\x10n")
	lineUnescaper = strings.NewReplacer("\x10\x10", "\x10", "\x10r", "\r", "\x10n", "\n")
)

func escapeLine(name string) string   { return lineEscaper.Replace(name) }
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

// GetSettings turns off in the engine what the session does itself.
func (e *Engine) GetSettings() (*ftpserver.Settings, error) {
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
// left to the kernel to find one.
func (e *Engine) listen() error {
	err := e.internalCommand("EPSV", 229)
	if err != nil {
		e.anyPort = true
		err = e.internalCommand("EPSV", 229)
		e.anyPort = false
	}
	if err != nil && e.ctx.Err() == nil {
		return errors.Join(ErrCannotListen, err)
	}
	return err
}

// ErrCannotListen reports a transfer for which the engine has no listener.
var ErrCannotListen = errors.New("the engine cannot listen")

// FetchNext returns a port for the engine to listen on. No client connects to it.
func (e *Engine) FetchNext() (shown, listened int, ok bool) {
	if e.anyPort {
		return 0, 0, true
	}
	port := int(e.ports.Random())
	return port, port, true
}

// NumberAttempts leaves it to the engine how many ports it tries.
func (e *Engine) NumberAttempts() int { return 0 }

// ClientConnected is called before the engine greets.
func (e *Engine) ClientConnected(client ftpserver.ClientContext) (string, error) {
	e.client = client
	return "ready", nil
}

// ClientDisconnected has nothing to do: the session ends the engine.
func (e *Engine) ClientDisconnected(ftpserver.ClientContext) {}

// AuthUser is called by PASS.
func (e *Engine) AuthUser(client ftpserver.ClientContext, _, _ string) (ftpserver.ClientDriver, error) {
	var home string
	err := e.op.apart(func() (err error) {
		home, err = e.cfg.Login()
		return err
	})
	if err != nil {
		return nil, err
	}
	client.SetPath(escapeLine(home))
	return &engineFs{engine: e}, nil
}

// GetTLSConfig refuses: TLS is the session's.
func (e *Engine) GetTLSConfig() (*tls.Config, error) {
	return nil, errors.ErrUnsupported
}

// WrapPassiveListener gives the engine the data connection of the transfer
// that is about to begin. No client connects to the engine's own listener, so it is
// closed at once and costs no descriptor. But before the engine accepts it sets a
// deadline on that listener, which therefore becomes the server's placeholder.
func (e *Engine) WrapPassiveListener(own net.Listener) (net.Listener, error) {
	_ = own.Close()
	if tcp, ok := own.(*net.TCPListener); ok {
		placeholder, err := e.cfg.Placeholder.get()
		if err != nil {
			return nil, err
		}
		*tcp = *placeholder
	}
	return &transferListener{engine: e, transfer: e.op.Transfer, ctx: e.op.Context}, nil
}

// Accept yields the connection, then says that the listener is closed, in the
// words that the engine treats as a regular end.
func (e *Engine) Accept() (net.Conn, error) {
	if e.accepted {
		return nil, &net.OpError{Op: "accept", Net: "memory", Err: errListenerClosed}
	}
	e.accepted = true
	return &engineConn{engine: e, local: e.cfg.Local, remote: e.cfg.Remote}, nil
}

// errListenerClosed has the text that the engine compares.
var errListenerClosed = errors.New("use of closed network connection")

// Close does nothing: the session ends the connection.
func (e *Engine) Close() error { return nil }

// Addr is the address that the client reached.
func (e *Engine) Addr() net.Addr { return e.cfg.Local }

// An engineConn is the engine's end of the connection, with the addresses of the
// control connection. One goroutine of the engine reads, and only one writes.
type engineConn struct {
	engine        *Engine
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

// transferListener is the listener from which the engine takes a transfer's
// data connection.
type transferListener struct {
	engine   *Engine
	transfer *dataconn.Transfer
	ctx      context.Context
}

var _ net.Listener = (*transferListener)(nil)

func (l *transferListener) Accept() (net.Conn, error) { return l.transfer.Open(l.ctx) }

// Close does nothing: the session closes what the transfer uses.
func (l *transferListener) Close() error { return nil }

// Addr is the address that the client reached.
func (l *transferListener) Addr() net.Addr { return l.engine.Addr() }
