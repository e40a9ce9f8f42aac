package engine

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	ftpserver "github.com/fclairamb/ftpserverlib"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/panics"
)

// A Server is one ftpserverlib server, which serves the engines of all sessions.
//
// The library asks one object for all of them. The remote address of an engine's connection leads that to the engine.
// The listener of a transfer is found by the number that stands in the reply to EPSV in place of a port.
type Server struct {
	avoid    netaddr.PortRange
	library  *ftpserver.FtpServer
	engines  atomic.Uint64 // so far
	arrivals chan net.Conn
	closed   chan struct{}

	// port is where the library listens from the first transfer on, 0 before. That listener stays, and closes what
	// connects.
	port    atomic.Int64
	listens atomic.Bool // the library listens on the port
	opening sync.Mutex  // held while it begins to

	mu      sync.Mutex
	serving bool
	ended   bool
	offers  int
	offered map[int]*transferListener // by number, until the session takes them
}

// NewServer makes a server. The port on which it listens is none of avoid, if the kernel has another.
func NewServer(avoid netaddr.PortRange) *Server {
	s := &Server{avoid: avoid, arrivals: make(chan net.Conn), closed: make(chan struct{}),
		offered: map[int]*transferListener{}}
	s.library = ftpserver.NewFtpServer(callbacks{s})
	s.library.Logger = slog.New(slog.DiscardHandler) // its own writes what it discards
	return s
}

// errServerEnded reports an engine that was to start after Close.
var errServerEnded = errors.New("the engines have ended")

// serve serves engines, if the server does not do so yet.
func (s *Server) serve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return errServerEnded
	case s.serving:
		return nil
	}
	if err := s.library.Listen(); err != nil {
		return fmt.Errorf("start the engines: %w", err)
	}
	s.serving = true
	panics.Go(func() { _ = s.library.Serve() }) // until Close
	return nil
}

// Close ends the server. Engines that have started live on, but get no more transfers.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving && !s.ended {
		_ = s.library.Stop()
	}
	s.ended = true
}

// portAttempts is how many ports of the kernel are looked at for one that sessions do not get.
const portAttempts = 50

// choosePort replaces the port of the library's listener. The caller holds opening.
func (s *Server) choosePort() error {
	port := 0
	for range portAttempts {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{})
		if err != nil {
			return err
		}
		port = l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if !s.avoid.Contains(uint16(port)) {
			break
		}
	}
	s.port.Store(int64(port))
	return nil
}

// offer keeps a listener until a session takes it, and gives it a number.
func (s *Server) offer() *transferListener {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offers++
	l := &transferListener{server: s, number: s.offers}
	s.offered[l.number] = l
	return l
}

// take returns the listener of a number, nil where there is none, and forgets it.
func (s *Server) take(number int) *transferListener {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.offered[number]
	delete(s.offered, number)
	return l
}

// callbacks is what the library sees of the server: its main driver, the listener that yields the connections of
// engines, and the ports for its own listener.
type callbacks struct{ *Server }

var (
	_ ftpserver.MainDriver                        = callbacks{}
	_ ftpserver.MainDriverExtensionPassiveWrapper = callbacks{}
	_ ftpserver.PasvPortGetter                    = callbacks{}
	_ net.Listener                                = callbacks{}
)

// GetSettings turns off in the engine what the session does itself.
func (c callbacks) GetSettings() (*ftpserver.Settings, error) {
	return &ftpserver.Settings{
		Listener:                        c,
		PassiveTransferPortRange:        c,
		PassiveTransferPortMultiplexing: true,
		IdleTimeout:                     math.MaxInt32, // seconds; the session watches
		ConnectionTimeout:               math.MaxInt32,
		DisableLISTArgs:                 true,
		DisableActiveMode:               true,
		DefaultTransferType:             ftpserver.TransferTypeBinary, // what careless clients mean
		PasvConnectionsCheck:            ftpserver.IPMatchDisabled,    // the session has checked
	}, nil
}

// GetTLSConfig refuses: TLS is the session's.
func (callbacks) GetTLSConfig() (*tls.Config, error) { return nil, errors.ErrUnsupported }

// ClientConnected is called before the engine greets.
func (callbacks) ClientConnected(client ftpserver.ClientContext) (string, error) {
	engineOf(client).client = client
	return "ready", nil
}

// ClientDisconnected has nothing to do: the session ends the engine.
func (callbacks) ClientDisconnected(ftpserver.ClientContext) {}

// AuthUser is called by PASS.
func (callbacks) AuthUser(client ftpserver.ClientContext, _, _ string) (ftpserver.ClientDriver, error) {
	return engineOf(client).authenticate()
}

// FetchNext returns the port of the library's listener, again and again. The other number is that of the reply to
// EPSV, which WrapPassiveListener chooses.
func (c callbacks) FetchNext() (shown, listened int, ok bool) {
	port := c.port.Load()
	return 0, int(port), port != 0
}

// NumberAttempts leaves it to the library how many ports it tries.
func (callbacks) NumberAttempts() int { return 0 }

// WrapPassiveListener gives the engine the listener from which it takes the data connection of the next transfer.
// Which engine asks is not known here: the session finds the listener by its number. The library has reserved its own
// listener for the engine's address, and Close ends that.
func (c callbacks) WrapPassiveListener(own net.Listener) (net.Listener, error) {
	_ = own.Close()
	return c.offer(), nil
}

// Accept yields the connection of an engine that starts. In the end it says that the listener is closed, in the words
// that the library treats as a regular end.
func (c callbacks) Accept() (net.Conn, error) {
	select {
	case conn := <-c.arrivals:
		return conn, nil
	case <-c.closed:
		return nil, &net.OpError{Op: "accept", Net: "memory", Err: errListenerClosed}
	}
}

// errListenerClosed has the text that the library compares.
var errListenerClosed = errors.New("use of closed network connection")

// Close ends Accept. [Server.Close] brings the library to call it once.
func (c callbacks) Close() error {
	close(c.closed)
	return nil
}

// Addr is no address that anything can reach.
func (callbacks) Addr() net.Addr { return address{} }

// An address is the remote address of an engine's connection, which leads from the library to the engine.
type address struct{ engine *Engine }

// engineOf is the engine that the library calls for.
func engineOf(client ftpserver.ClientContext) *Engine { return client.RemoteAddr().(address).engine }

// Network is made up.
func (address) Network() string { return "memory" }

// String is an address that no other engine has, because the library reserves its listener by it. No connection from
// the network has it: it is of the block that routers discard (RFC 6666).
func (a address) String() string {
	ip := [16]byte{0: 0x01}
	if a.engine != nil {
		binary.BigEndian.PutUint64(ip[8:], a.engine.number)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(ip), 1).String()
}
