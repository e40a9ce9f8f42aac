package relay

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
)

// A Trust holds the networks whose PROXY headers are trusted. Connections from other networks are passed on
// unchanged.
type Trust struct {
	networks []netip.Prefix
	refused  func()
	guard    *panics.Guard
	log      *slog.Logger
	sampler  limits.Sampler[refusal]
}

// A refusal is the sender and the port of a connection without a header.
type refusal struct {
	from netip.Addr
	port int
}

// NewTrust returns a Trust for networks. It calls refused for each connection from them that has no header. The
// guard recovers panics while a header is read, so that they end only that connection.
func NewTrust(networks []netip.Prefix, refused func(), guard *panics.Guard, log *slog.Logger) *Trust {
	return &Trust{networks: networks, refused: refused, guard: guard, log: log}
}

// contains reports whether headers from an address are trusted and required.
func (t *Trust) contains(addr netip.Addr) bool {
	addr = addr.WithZone("")
	return slices.ContainsFunc(t.networks, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// Accept reads the header of a connection from a trusted network, and returns other connections unchanged. If it
// fails, it closes the connection.
func (t *Trust) Accept(conn net.Conn) (net.Conn, error) {
	from := netaddr.Of(conn.RemoteAddr())
	if !t.contains(from) {
		return conn, nil
	}
	if limits.TransferReserve.IsReached(conn) {
		_ = conn.Close()
		return nil, syscall.EMFILE
	}
	proxied, err := readHeader(conn)
	if err == nil {
		return proxied, nil
	}
	if !errors.Is(err, errClosed) {
		t.refuse(from, conn.LocalAddr(), err)
	}
	_ = conn.Close()
	return nil, err
}

// Receive reads the header of a data connection if it must have one, and passes the connection to match. If match
// returns false, Receive closes the connection.
func (t *Trust) Receive(conn net.Conn, arrived time.Time, match dataconn.Match) {
	proxied, err := t.Accept(conn)
	if err == nil && !match(proxied, arrived) {
		_ = proxied.Close()
	}
}

// refuse counts a connection without a header, and logs one per minute for each address and port.
func (t *Trust) refuse(from netip.Addr, to net.Addr, err error) {
	t.refused()
	port := 0
	if tcp, ok := to.(*net.TCPAddr); ok {
		port = tcp.Port
	}
	if missing, ok := t.sampler.Pass(refusal{from, port}); ok {
		t.log.Warn(
			"connection without a PROXY header refused; let the load balancer send one, or remove its network from "+
				"proxy_protocol.trusted",
			"from", from, "port", port, "others", missing, "err", err)
	}
}

// Listen wraps a listener. Connections from trusted networks must begin with a header. A connection that waits for
// its header does not delay other connections.
func (t *Trust) Listen(l net.Listener) net.Listener {
	if len(t.networks) == 0 {
		return l
	}
	wrapped := &listener{Listener: l, trust: t, accepted: make(chan accepted), closed: make(chan struct{})}
	panics.Go(wrapped.accept)
	return wrapped
}

type listener struct {
	net.Listener
	trust    *Trust
	accepted chan accepted
	closed   chan struct{}
	close    sync.Once
}

// accepted holds the results of Accept.
type accepted struct {
	conn net.Conn
	err  error
}

func (l *listener) accept() {
	for {
		conn, err := l.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			l.hand(accepted{err: err}) // the caller of Accept may pause before it retries
		default:
			l.trust.guard.Go("connection before its PROXY header", func() { l.read(conn) })
		}
	}
}

// read passes a connection on once its header was read.
func (l *listener) read(conn net.Conn) {
	read := false
	defer func() {
		if !read {
			_ = conn.Close()
		}
	}()
	proxied, err := l.trust.Accept(conn)
	if read = err == nil; read {
		l.hand(accepted{conn: proxied})
	}
}

func (l *listener) hand(a accepted) {
	select {
	case l.accepted <- a:
	case <-l.closed:
		if a.conn != nil {
			_ = a.conn.Close()
		}
	}
}

// Accept returns the next connection whose header was read.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close closes the listener and the connections that Accept has not returned.
func (l *listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
