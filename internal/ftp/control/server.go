package control

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/report"
)

// engineIdle is how long a session waits for a command before its engine stops.
const engineIdle = 10 * time.Second

// A Server accepts control connections and runs a session on each.
type Server struct {
	shared
	cfg      atomic.Pointer[Config]
	tls      map[*tls.Config]*tls.Config // the last one, by that of its Config
	acceptor *acceptor
}

// New makes a server; Serve and ServeTLS give it listeners.
func New(cfg Config) *Server {
	if cfg.Limits == nil {
		cfg.Limits = limits.NewServer(limits.Bounds{}, limits.Bounds{})
	}
	srv := &Server{
		shared: shared{
			commands: commandTable(),
			facts:    list.DefaultFacts(),
			started:  time.Now().Truncate(time.Second),
			engines:  engine.NewServer(cfg.Ports.Range),
		},
		acceptor: newAcceptor(cfg.Logger, cfg.Guard),
	}
	srv.Configure(cfg)
	return srv
}

// Configure gives sessions that begin from then on another configuration. Its Limits, which count sessions, must be
// the same.
func (srv *Server) Configure(cfg Config) {
	if base := cfg.TLS; base != nil {
		if cfg.TLS = srv.tls[base]; cfg.TLS == nil { // tickets of the same one stay valid
			cfg.TLS = dataconn.TLSConfig(base)
		}
		srv.tls = map[*tls.Config]*tls.Config{base: cfg.TLS}
	}
	cfg.EngineIdle = cmp.Or(cfg.EngineIdle, engineIdle)
	srv.cfg.Store(&cfg)
}

// Serve runs a session on each connection that the listener accepts. It returns nil after Shutdown. Sessions live
// until they end themselves, or until ctx is cancelled.
func (srv *Server) Serve(ctx context.Context, listener net.Listener) error {
	return srv.serve(ctx, listener, false)
}

// ServeTLS is Serve with TLS from the first byte (implicit TLS).
func (srv *Server) ServeTLS(ctx context.Context, listener net.Listener) error {
	if srv.cfg.Load().TLS == nil {
		return errors.New("implicit TLS needs a TLS configuration")
	}
	return srv.serve(ctx, listener, true)
}

func (srv *Server) serve(ctx context.Context, listener net.Listener, implicit bool) error {
	return srv.acceptor.Serve(ctx, listener, func(conn net.Conn) runner {
		return newSession(ctx, &srv.shared, srv.cfg.Load(), conn, implicit)
	})
}

// Sessions tells what the sessions do at the moment, in no order.
func (srv *Server) Sessions() []report.ShownSession {
	running := srv.acceptor.Sessions()
	shown := make([]report.ShownSession, len(running))
	for i, s := range running {
		shown[i] = s.(*session).activity.Show()
	}
	return shown
}

// Disconnect ends a session as an administrator wants, with 421, and tells whether there is one of this ID. It does
// not wait.
func (srv *Server) Disconnect(id string) bool {
	for _, other := range srv.acceptor.Sessions() {
		if s := other.(*session); s.id == id {
			s.cancel(dataconn.ErrDisconnected)
			return true
		}
	}
	return false
}

// Shutdown says 421 to idle sessions and to new ones in their languages, lets running transfers end and waits for all
// of that. When ctx ends first it ends what is left, with 421 too, and returns ctx's error.
func (srv *Server) Shutdown(ctx context.Context) error {
	defer srv.engines.Close()
	return srv.acceptor.Shutdown(ctx)
}
