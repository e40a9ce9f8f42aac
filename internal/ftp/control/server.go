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

// engineIdle is the default time without a command after which the engine of a session stops.
const engineIdle = 10 * time.Second

// A Server accepts control connections and runs a session on each.
type Server struct {
	shared
	cfg      atomic.Pointer[Config]
	tls      map[*tls.Config]*tls.Config // TLS configuration by TLS of the last Config
	acceptor *acceptor
}

// New returns a server. Call Serve and ServeTLS to give it listeners.
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

// Configure sets the configuration of new sessions. Limits must stay the same, because they count the running
// sessions.
func (srv *Server) Configure(cfg Config) {
	if base := cfg.TLS; base != nil {
		if cfg.TLS = srv.tls[base]; cfg.TLS == nil { // reuse it, so that its session tickets stay valid
			cfg.TLS = dataconn.TLSConfig(base)
		}
		srv.tls = map[*tls.Config]*tls.Config{base: cfg.TLS}
	}
	cfg.EngineIdle = cmp.Or(cfg.EngineIdle, engineIdle)
	srv.cfg.Store(&cfg)
}

// Serve runs a session on each connection that the listener accepts, and returns nil after Shutdown. Sessions run
// until they end or until ctx is canceled.
func (srv *Server) Serve(ctx context.Context, listener net.Listener) error {
	return srv.serve(ctx, listener, false)
}

// ServeTLS is like Serve with TLS from the first byte (implicit TLS).
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

// Sessions returns what each session is doing, in no particular order.
func (srv *Server) Sessions() []report.SessionInfo {
	running := srv.acceptor.Sessions()
	shown := make([]report.SessionInfo, len(running))
	for i, s := range running {
		shown[i] = s.(*session).activity.Info()
	}
	return shown
}

// Disconnect ends the session with this ID with reply 421, on behalf of an administrator, and reports whether it
// exists. It does not wait for the session to end.
func (srv *Server) Disconnect(id string) bool {
	for _, other := range srv.acceptor.Sessions() {
		if s := other.(*session); s.id == id {
			s.cancel(dataconn.ErrDisconnected)
			return true
		}
	}
	return false
}

// Shutdown sends 421 to idle and new sessions in their languages, lets running transfers finish, and waits for
// them. If ctx ends first, it ends the remaining sessions, also with 421, and returns an error that wraps
// ctx.Err().
func (srv *Server) Shutdown(ctx context.Context) error {
	defer srv.engines.Close()
	return srv.acceptor.Shutdown(ctx)
}
