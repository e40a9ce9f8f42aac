// Package web makes the HTTP servers of the program: metrics and probes, administration, the challenges of ACME. It
// also makes clients that follow no redirects, and posts to webhooks: events, and lines of the audit log.
//
// Strangers may reach each server. A [Server] bounds how long a client may take to send a request, to read the answer
// and to be idle, and how many connections there are. One connection too many costs another that has no request, the
// oldest of its network first. So clients that hold connections keep out no probe, nor do those that read no answers.
// The last descriptors of the process stay free: see [limits.Reserve].
package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/netaddr"
)

const (
	// readTimeout is how long a client may take to send a request.
	readTimeout = 10 * time.Second
	// writeTimeout is how long an answer may take. Some ask S3.
	writeTimeout = time.Minute
	// idleTimeout is how long a connection stays open between requests, and longer than most probes and scrapes pause.
	idleTimeout = time.Minute
	// maxHeader is how many bytes the header of a request has at most.
	maxHeader = 16 << 10
	// maxConnections is how many connections there may be.
	maxConnections = 64
	// maxPerNetwork is the same for one network, so that it leaves some to others. A browser has six at most.
	maxPerNetwork = 32
)

// Options are what servers differ in. The zero value is a server with the limits of this package.
type Options struct {
	// Probes says that the server may use the last descriptors of the process, which others leave to it.
	Probes bool
	// Timeout bounds each request and the time between two. The default is a minute, and ten seconds to send a request.
	Timeout time.Duration
	// Connections is how many there may be at the same time, and PerNetwork how many of them of one client, by
	// [limits.Network].
	Connections, PerNetwork int
	// Wrap puts TLS above a connection, or returns it as it is. Without it there is no TLS.
	Wrap func(net.Conn) net.Conn
	// Connected returns the context of the requests of a connection, which is ctx or made of it. It gets the connection
	// below TLS. Without it the context is ctx.
	Connected func(ctx context.Context, conn net.Conn) context.Context
	// Protocols are handlers of what TLS has negotiated instead of HTTP, by the name in TLS.
	Protocols map[string]func(*tls.Conn)
	// Log gets what goes wrong at debug level, because strangers can cause it.
	Log *slog.Logger
}

// A Server answers HTTP/1.1 with limits.
type Server struct {
	opts Options
	http *http.Server

	mu    sync.Mutex
	open  []*conn // the oldest first
	count map[netip.Prefix]int
}

// NewServer makes a server of a handler.
func NewServer(handler http.Handler, opts Options) *Server {
	opts.Connections, opts.PerNetwork = cmp.Or(opts.Connections, maxConnections), cmp.Or(opts.PerNetwork, maxPerNetwork)
	s := &Server{opts: opts, count: make(map[netip.Prefix]int)}
	s.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, _ := r.Context().Value(connKey{}).(*conn)
			s.setBusy(c, true)
			defer s.setBusy(c, false)
			handler.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: cmp.Or(opts.Timeout, readTimeout), ReadTimeout: cmp.Or(opts.Timeout, readTimeout),
		WriteTimeout: cmp.Or(opts.Timeout, writeTimeout), IdleTimeout: cmp.Or(opts.Timeout, idleTimeout),
		MaxHeaderBytes: maxHeader,
		// strangers fill it
		ErrorLog:  slog.NewLogLogger(cmp.Or(opts.Log, slog.New(slog.DiscardHandler)).Handler(), slog.LevelDebug),
		Protocols: new(http.Protocols),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			own := connOf(c)
			if opts.Connected != nil && own != nil {
				ctx = opts.Connected(ctx, own.Conn)
			}
			return context.WithValue(ctx, connKey{}, own)
		},
	}
	s.http.Protocols.SetHTTP1(true) // so that few connections are few requests
	s.http.TLSNextProto = make(map[string]func(*http.Server, *tls.Conn, http.Handler))
	for name, handle := range opts.Protocols {
		s.http.TLSNextProto[name] = func(_ *http.Server, c *tls.Conn, _ http.Handler) { handle(c) }
	}
	return s
}

// Serve answers until Close. The error is never nil.
func (s *Server) Serve(l net.Listener) error { return s.http.Serve(&listener{l, s}) }

// Close ends all connections.
func (s *Server) Close() error { return s.http.Close() }

// A listener accepts connections within the limits.
type listener struct {
	net.Listener
	of *Server
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				l.of.evict(nil) // the server tries again
			}
			return nil, err
		}
		c := l.of.enter(accepted)
		switch wrap := l.of.opts.Wrap; {
		case c == nil:
			_ = accepted.Close()
		case wrap != nil:
			return wrap(c), nil
		default:
			return c, nil
		}
	}
}

// A conn is a connection that counts.
type conn struct {
	net.Conn
	network netip.Prefix
	busy    bool // whether a request is being answered; guarded by the server
	leave   func()
}

type connKey struct{}

// connOf is the connection that counts below TLS.
func connOf(c net.Conn) *conn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	own, _ := c.(*conn)
	return own
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

func (s *Server) setBusy(c *conn, busy bool) {
	if c == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.busy = busy
}

// enter counts a connection, which may cost another one its place. It returns nil where there is no place.
func (s *Server) enter(accepted net.Conn) *conn {
	scarce := limits.TransferReserve.IsReached(accepted)
	if scarce && !s.opts.Probes {
		return nil
	}
	c := &conn{Conn: accepted, network: limits.Network(netaddr.Of(accepted.RemoteAddr()))}
	c.leave = sync.OnceFunc(func() { s.forget(c) })
	switch last := s.add(c); {
	case last == c:
		c.leave() // the listener closes it
		return nil
	case last != nil:
		_ = last.Close()
	case scarce:
		s.evict(c)
	}
	return c
}

// add counts a connection, and returns the one that is to be closed for it. Where each other is busy that is the
// connection itself. A server of probes closes the oldest: its answers take milliseconds, except to clients that do not
// read them.
func (s *Server) add(c *conn) (last *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, c)
	s.count[c.network]++
	among := func(*conn) bool { return true }
	switch {
	case s.count[c.network] > s.opts.PerNetwork:
		among = func(other *conn) bool { return other.network == c.network }
	case len(s.open) <= s.opts.Connections:
		return nil
	}
	if last = s.oldestOf(among); last == c && s.opts.Probes {
		last = s.open[slices.IndexFunc(s.open, among)]
	}
	return last
}

// oldestOf is the oldest connection without a request that a test passes. The caller holds the lock.
func (s *Server) oldestOf(test func(*conn) bool) *conn {
	i := slices.IndexFunc(s.open, func(c *conn) bool { return !c.busy && test(c) })
	if i < 0 {
		return nil
	}
	return s.open[i]
}

// evict closes the oldest connection without a request, but for one of them.
func (s *Server) evict(but *conn) {
	s.mu.Lock()
	oldest := s.oldestOf(func(c *conn) bool { return c != but })
	s.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(other *conn) bool { return other == c })
	if s.count[c.network]--; s.count[c.network] == 0 {
		delete(s.count, c.network)
	}
}
