package control

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"

	ftpserver "github.com/fclairamb/ftpserverlib"
)

// engineBuffer is the read buffer for the engine's replies, which are short.
const engineBuffer = 256

// An engine is one ftpserverlib server that serves one session. It speaks FTP
// to the session over a pipe, so that each of its callbacks knows whom it is for.
type engine struct {
	pipe    net.Conn // the session's end
	replies chan reply
	stopped chan struct{} // closed by stopEngine
	client  ftpserver.ClientContext
}

// startEngine starts an engine and takes its greeting, which no client sees.
func (s *session) startEngine() error {
	near, far := net.Pipe()
	e := &engine{pipe: near, replies: make(chan reply), stopped: make(chan struct{})}
	server := ftpserver.NewFtpServer(&engineDriver{session: s, engine: e, conn: far})
	if err := server.ListenAndServe(); err != nil {
		_ = near.Close()
		return fmt.Errorf("start the engine: %w", err)
	}
	go e.readReplies()
	if _, ok := <-e.replies; !ok {
		return errEngineGone
	}
	s.engine = e
	return nil
}

// stopEngine ends the engine with its transfer and its login.
func (s *session) stopEngine() {
	if s.engine != nil {
		close(s.engine.stopped)
		_ = s.engine.pipe.Close()
		s.engine = nil
	}
}

// readReplies hands on the engine's replies until it hangs up or is stopped.
func (e *engine) readReplies() {
	defer close(e.replies)
	in := bufio.NewReaderSize(e.pipe, engineBuffer)
	for {
		r, err := readReply(in)
		if err != nil {
			return
		}
		select {
		case e.replies <- r:
		case <-e.stopped:
			return
		}
	}
}

// engineDriver is the engine's way to the session: its main driver, and the
// listener that yields the one connection that the engine serves.
type engineDriver struct {
	session *session
	engine  *engine
	conn    net.Conn // the engine's end of the pipe, nil once accepted
}

var (
	_ ftpserver.MainDriver                        = (*engineDriver)(nil)
	_ ftpserver.MainDriverExtensionPassiveWrapper = (*engineDriver)(nil)
	_ net.Listener                                = (*engineDriver)(nil)
)

// GetSettings turns off in the engine what the session does itself.
func (d *engineDriver) GetSettings() (*ftpserver.Settings, error) {
	return &ftpserver.Settings{
		Listener:             d,
		IdleTimeout:          math.MaxInt32, // seconds; the session watches
		ConnectionTimeout:    math.MaxInt32,
		DisableLISTArgs:      true,
		DisableActiveMode:    true,
		DefaultTransferType:  ftpserver.TransferTypeBinary, // what careless clients mean
		PasvConnectionsCheck: ftpserver.IPMatchDisabled,    // the session has checked
	}, nil
}

// ClientConnected is called before the engine greets.
func (d *engineDriver) ClientConnected(client ftpserver.ClientContext) (string, error) {
	d.engine.client = client
	return "ready", nil
}

// ClientDisconnected has nothing to do: the session ends the engine.
func (d *engineDriver) ClientDisconnected(ftpserver.ClientContext) {}

// AuthUser is called by PASS. The password does not cross the pipe, because it
// need not be a line of text; the session has it.
func (d *engineDriver) AuthUser(client ftpserver.ClientContext, _, _ string) (ftpserver.ClientDriver, error) {
	storage, home, err := d.session.authenticate()
	if err != nil {
		return nil, err
	}
	client.SetPath(escapePathname(home))
	return &engineFs{Storage: storage, session: d.session}, nil
}

// GetTLSConfig refuses: TLS is the session's.
func (d *engineDriver) GetTLSConfig() (*tls.Config, error) {
	return nil, errors.ErrUnsupported
}

// WrapPassiveListener gives the engine the data connection of the transfer
// that is about to begin. The engine sets deadlines on its own listener, so
// that one stays open until the transfer ends.
func (d *engineDriver) WrapPassiveListener(own net.Listener) (net.Listener, error) {
	return &transferListener{Listener: own, ctx: d.session.ctx, transfer: d.session.transfer}, nil
}

// Accept yields the pipe, then says that the listener is closed, in the words
// that the engine takes for a regular end.
func (d *engineDriver) Accept() (net.Conn, error) {
	if d.conn == nil {
		return nil, &net.OpError{Op: "accept", Net: "pipe", Err: errListenerClosed}
	}
	conn := &engineConn{Conn: d.conn, local: d.session.conn.LocalAddr(), remote: d.session.conn.RemoteAddr()}
	d.conn = nil
	return conn, nil
}

// errListenerClosed has the text that the engine compares.
var errListenerClosed = errors.New("use of closed network connection")

var errEngineGone = errors.New("the engine hung up")

// Close does nothing: the pipe is closed by the session.
func (d *engineDriver) Close() error { return nil }

// Addr is the address that the client reached.
func (d *engineDriver) Addr() net.Addr { return d.session.conn.LocalAddr() }

// engineConn is the engine's end of the pipe with the addresses of the control
// connection.
type engineConn struct {
	net.Conn
	local, remote net.Addr
}

func (c *engineConn) LocalAddr() net.Addr  { return c.local }
func (c *engineConn) RemoteAddr() net.Addr { return c.remote }

// command sends the engine a command line.
func (e *engine) command(line string) error {
	_, err := io.WriteString(e.pipe, line+"\r\n")
	return err
}
