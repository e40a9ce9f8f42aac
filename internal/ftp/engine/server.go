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

// A Server is the ftpserverlib server that the engines of all sessions share.
//
// The library calls the same object for all engines. It finds the connection of an engine by its remote address,
// and the listener of a transfer by the number that the reply to EPSV has instead of a port.
type Server struct {
	avoid    netaddr.PortRange
	library  *ftpserver.FtpServer
	conns    atomic.Uint64 // number of connections so far
	arrivals chan net.Conn
	closed   chan struct{}

	// port is the port of the permanent listener of the library, or 0 before the first transfer. That listener
	// closes every connection that it accepts.
	port    atomic.Int64
	listens atomic.Bool // the library listens on port
	opening sync.Mutex  // held while the library starts to listen

	mu      sync.Mutex
	serving bool
	ended   bool
	offers  int
	offered map[int]*transferListener // by number, until an engine takes them
}

// NewServer returns a server. Its permanent listener gets a port outside avoid if the kernel offers one.
func NewServer(avoid netaddr.PortRange) *Server {
	s := &Server{avoid: avoid, arrivals: make(chan net.Conn), closed: make(chan struct{}),
		offered: map[int]*transferListener{}}
	s.library = ftpserver.NewFtpServer(callbacks{s})
	s.library.Logger = slog.New(slog.DiscardHandler) // the default logger formats messages that it discards
	return s
}

var errServerClosed = errors.New("the server of the engines is closed")

// serve starts the server of the library unless it is running.
func (s *Server) serve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return errServerClosed
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

// Close stops the server. Sessions of the library continue, but get no more transfers.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving && !s.ended {
		_ = s.library.Stop()
	}
	s.ended = true
}

// portAttempts limits how many ports of the kernel are tried to find one outside the range to avoid.
const portAttempts = 50

// choosePort sets the port of the permanent listener. The caller must hold opening.
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

// offer registers a new listener under its number until an engine takes it.
func (s *Server) offer() *transferListener {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offers++
	l := &transferListener{server: s, number: s.offers}
	s.offered[l.number] = l
	return l
}

// take removes and returns the listener with this number, or nil.
func (s *Server) take(number int) *transferListener {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.offered[number]
	delete(s.offered, number)
	return l
}

// callbacks holds the methods that the library calls: its main driver, the listener that returns the connections
// of engines, and the ports for its own listener.
type callbacks struct{ *Server }

var (
	_ ftpserver.MainDriver                        = callbacks{}
	_ ftpserver.MainDriverExtensionPassiveWrapper = callbacks{}
	_ ftpserver.PasvPortGetter                    = callbacks{}
	_ net.Listener                                = callbacks{}
)

// GetSettings disables everything that the session does itself.
func (c callbacks) GetSettings() (*ftpserver.Settings, error) {
	return &ftpserver.Settings{
		Listener:                        c,
		PassiveTransferPortRange:        c,
		PassiveTransferPortMultiplexing: true,
		IdleTimeout:                     math.MaxInt32, // in seconds; the session handles timeouts
		ConnectionTimeout:               math.MaxInt32,
		DisableLISTArgs:                 true,
		DisableActiveMode:               true,
		DefaultTransferType:             ftpserver.TransferTypeBinary, // as clients that send no TYPE expect
		PasvConnectionsCheck:            ftpserver.IPMatchDisabled,    // the session has checked the address
	}, nil
}

// GetTLSConfig returns an error, because the session handles TLS.
func (callbacks) GetTLSConfig() (*tls.Config, error) { return nil, errors.ErrUnsupported }

// ClientConnected returns the greeting, which no client sees.
func (callbacks) ClientConnected(ftpserver.ClientContext) (string, error) { return "ready", nil }

// ClientDisconnected does nothing, because the session ends the connection.
func (callbacks) ClientDisconnected(ftpserver.ClientContext) {}

// AuthUser is called for PASS. The session has authenticated the user, so it returns the driver of the login.
func (callbacks) AuthUser(client ftpserver.ClientContext, _, _ string) (ftpserver.ClientDriver, error) {
	return files{client.RemoteAddr().(address).conn}, nil
}

// FetchNext always returns the port of the permanent listener. WrapPassiveListener chooses the number in the reply
// to EPSV.
func (c callbacks) FetchNext() (shown, listened int, ok bool) {
	port := c.port.Load()
	return 0, int(port), port != 0
}

// NumberAttempts returns 0, so the library decides how many ports it tries.
func (callbacks) NumberAttempts() int { return 0 }

// WrapPassiveListener returns the listener that provides the data connection of the next transfer. Any engine may have
// requested it; that engine finds the listener by its number. own is the listener that the library has reserved for the
// address of the connection. Closing it ends the reservation.
func (c callbacks) WrapPassiveListener(own net.Listener) (net.Listener, error) {
	_ = own.Close()
	return c.offer(), nil
}

// Accept returns the next connection of an engine. After Close it returns the error that ends the server of the
// library without a failure.
func (c callbacks) Accept() (net.Conn, error) {
	select {
	case conn := <-c.arrivals:
		return conn, nil
	case <-c.closed:
		return nil, &net.OpError{Op: "accept", Net: "memory", Err: errListenerClosed}
	}
}

// errListenerClosed has the text that the library compares with.
var errListenerClosed = errors.New("use of closed network connection")

// Close ends Accept. The library calls it once, in [Server.Close].
func (c callbacks) Close() error {
	close(c.closed)
	return nil
}

// Addr returns an address that cannot be reached.
func (callbacks) Addr() net.Addr { return address{} }

// An address is the remote address of a connection. The callbacks use it to find the connection.
type address struct{ conn *conn }

// Network returns an invented name.
func (address) Network() string { return "memory" }

// String returns a unique address, because the library reserves its listener by address. No client can have the
// address, because it is in the block that routers discard (RFC 6666).
func (a address) String() string {
	ip := [16]byte{0: 0x01}
	if a.conn != nil {
		binary.BigEndian.PutUint64(ip[8:], a.conn.number)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(ip), 1).String()
}
