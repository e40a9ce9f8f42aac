// Package web contains the HTTP servers and clients of the program. [NewServer] is used for metrics and probes, for the
// administration and for ACME challenges. [NewClient] returns clients that do not follow redirects, and a [Webhook]
// posts signed events and audit log lines.
//
// The servers may be reachable from the internet. A [Server] therefore limits how long a client may take to send a
// request, to read the response and to be idle, and how many connections are open. When there are too many, it closes
// an idle one, preferably the oldest of the same network. Clients that keep connections open or do not read responses
// therefore cannot block probes. The last file descriptors of the process stay free, see [limits.Reserve].
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
	// readTimeout limits the time in which a client must send a request.
	readTimeout = 10 * time.Second
	// writeTimeout limits the time of a response. Some responses need requests to S3.
	writeTimeout = time.Minute
	// idleTimeout limits the time between two requests. It is longer than the usual interval of probes and scrapes.
	idleTimeout = time.Minute
	// maxHeader is the maximum size of a request header in bytes.
	maxHeader = 16 << 10
	// maxConnections is the default maximum number of connections.
	maxConnections = 64
	// maxPerNetwork is the default maximum number of connections from one network. It leaves some for other networks. A
	// browser opens at most six.
	maxPerNetwork = 32
)

// Options configure a [Server]. The zero value uses the defaults of this package.
type Options struct {
	// Probes lets the server use the last file descriptors of the process, which all others leave free for it.
	Probes bool
	// Timeout limits each request and the time between requests. The default is a minute, but ten seconds for sending a
	// request.
	Timeout time.Duration
	// Connections is the maximum number of concurrent connections, and PerNetwork the maximum from one network, see
	// [limits.Network].
	Connections, PerNetwork int
	// Wrap returns a TLS connection on top of a connection, or the connection itself. If it is nil, the server does not
	// use TLS.
	Wrap func(net.Conn) net.Conn
	// Connected returns the context for the requests of a connection, derived from ctx. Its argument conn is the
	// connection below TLS. If it is nil, requests use ctx.
	Connected func(ctx context.Context, conn net.Conn) context.Context
	// Protocols contains handlers for protocols other than HTTP, by the name negotiated in TLS (ALPN).
	Protocols map[string]func(*tls.Conn)
	// Log receives errors of connections at debug level, because anyone can cause them.
	Log *slog.Logger
}

// A Server is an HTTP/1.1 server with limits.
type Server struct {
	opts Options
	http *http.Server

	mu    sync.Mutex
	open  []*conn // the oldest first
	count map[netip.Prefix]int
}

// NewServer returns a Server that calls handler.
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
		ErrorLog:       slog.NewLogLogger(cmp.Or(opts.Log, slog.New(slog.DiscardHandler)).Handler(), slog.LevelDebug),
		Protocols:      new(http.Protocols),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			own := connOf(c)
			if opts.Connected != nil && own != nil {
				ctx = opts.Connected(ctx, own.Conn)
			}
			return context.WithValue(ctx, connKey{}, own)
		},
	}
	s.http.Protocols.SetHTTP1(true) // a connection then has only one request at a time
	s.http.TLSNextProto = make(map[string]func(*http.Server, *tls.Conn, http.Handler))
	for name, handle := range opts.Protocols {
		s.http.TLSNextProto[name] = func(_ *http.Server, c *tls.Conn, _ http.Handler) { handle(c) }
	}
	return s
}

// Serve accepts connections until Close. The error is never nil.
func (s *Server) Serve(l net.Listener) error { return s.http.Serve(&listener{l, s}) }

// Close closes all connections and listeners.
func (s *Server) Close() error { return s.http.Close() }

// A listener enforces the limits of a server on the connections that it accepts.
type listener struct {
	net.Listener
	server *Server
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				l.server.evict(nil) // http.Server calls Accept again
			}
			return nil, err
		}
		c := l.server.admit(accepted)
		switch wrap := l.server.opts.Wrap; {
		case c == nil:
			_ = accepted.Close()
		case wrap != nil:
			return wrap(c), nil
		default:
			return c, nil
		}
	}
}

// A conn is a connection that counts toward the limits.
type conn struct {
	net.Conn
	network netip.Prefix
	busy    bool   // a request is being handled; guarded by Server.mu
	release func() // stops counting the connection
}

type connKey struct{}

// connOf returns the conn below TLS.
func connOf(c net.Conn) *conn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	own, _ := c.(*conn)
	return own
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	defer c.release()
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

// admit counts a new connection and may close another one for it. It returns nil if the connection has to be refused.
func (s *Server) admit(accepted net.Conn) *conn {
	inReserve := limits.TransferReserve.IsReached(accepted)
	if inReserve && !s.opts.Probes {
		return nil
	}
	c := &conn{Conn: accepted, network: limits.Network(netaddr.Of(accepted.RemoteAddr()))}
	c.release = sync.OnceFunc(func() { s.remove(c) })
	switch surplus := s.add(c); {
	case surplus == c:
		c.release() // the listener closes it
		return nil
	case surplus != nil:
		_ = surplus.Close()
	case inReserve:
		s.evict(c)
	}
	return c
}

// add counts a connection, and returns the connection that has to be closed if there are too many. If all others are
// busy, this is c itself. But a server for probes then closes the oldest one: its responses take only milliseconds, so
// a connection that is busy for longer belongs to a client that does not read.
func (s *Server) add(c *conn) (surplus *conn) {
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
	if surplus = s.oldestIdle(among); surplus == c && s.opts.Probes {
		surplus = s.open[slices.IndexFunc(s.open, among)]
	}
	return surplus
}

// oldestIdle returns the oldest connection without a request that matches, or nil. The caller must hold s.mu.
func (s *Server) oldestIdle(matches func(*conn) bool) *conn {
	i := slices.IndexFunc(s.open, func(c *conn) bool { return !c.busy && matches(c) })
	if i < 0 {
		return nil
	}
	return s.open[i]
}

// evict closes the oldest connection without a request, except keep.
func (s *Server) evict(keep *conn) {
	s.mu.Lock()
	oldest := s.oldestIdle(func(c *conn) bool { return c != keep })
	s.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(other *conn) bool { return other == c })
	if s.count[c.network]--; s.count[c.network] == 0 {
		delete(s.count, c.network)
	}
}
