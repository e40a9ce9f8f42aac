package control

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/report/tracing"
	"github.com/babelftp/babelftp/internal/users/account"
)

// Config is what a Server needs. Bundle, Backend, Logger, Ports, Data, IdleTimeout, CommitDelay and
// MaxLogins are required. The zero value of every other field is its default.
type Config struct {
	Bundle          *i18n.Bundle
	Backend         account.Backend
	DefaultLanguage language.Tag // English when undetermined

	TLS         *tls.Config // nil: AUTH TLS is refused
	TLSRequired bool        // USER is refused before AUTH TLS, and data connections before PROT P
	// TLSOptional are networks whose clients need no TLS. Tenants and users decide otherwise, see [account.Backend].
	TLSOptional []netip.Prefix

	// AcceptUnknownHosts says that HOST may name what no tenant answers to, and then chooses none (RFC 7151 3.2),
	// where it is refused otherwise.
	AcceptUnknownHosts bool

	PublicAddress dataconn.Public // what PASV shows

	IdleTimeout time.Duration // between commands
	EngineIdle  time.Duration // without a command, after which the engine of a session ends; 10 s by default
	Ports       *dataconn.Ports
	Data        dataconn.Settings
	// CommitDelay is the maximum time that an upload that looks complete waits for the end of the control connection.
	// The kernel of a killed client closes the data connection first and the control connection just after. An upload
	// that took less than eight times as long waits less.
	CommitDelay time.Duration
	MaxLogins   int // failed logins a session

	Limits       *limits.Server // nil for none
	LoginTimeout time.Duration  // of a session, until the login; 0 for no limit

	// Unaudited reports whether to refuse logins (with empty names), transfers and changes now, because the audit log
	// takes no lines of the user. Nil refuses nothing.
	Unaudited func(tenant, user string) bool

	Observe func(*report.Client) report.Observers // of a session; nil for none but those of this package
	Logger  *slog.Logger
	Guard   *panics.Guard      // counts the panics of sessions; nil for none
	Debug   *sessionlog.Switch // says of which sessions the logger gets debug lines whatever its level; nil for none
	Traces  *tracing.Tracer    // nil for none
}

// engineIdle is how long a session waits for a command before its engine stops.
const engineIdle = 10 * time.Second

// A Server accepts control connections and runs a session on each.
type Server struct {
	cfg      atomic.Pointer[Config]
	commands map[string]command
	facts    list.Facts // of MLST and MLSD, until OPTS MLST
	started  time.Time

	tls      map[*tls.Config]*tls.Config // the last one, by that of its Config
	engines  *engine.Server
	acceptor *acceptor
	log      sessionlog.Log
	failures account.FailureLog
}

// New makes a server; Serve and ServeTLS give it listeners.
func New(cfg Config) *Server {
	if cfg.Limits == nil {
		cfg.Limits = limits.NewServer(limits.Bounds{}, limits.Bounds{})
	}
	srv := &Server{
		engines:  engine.NewServer(cfg.Ports.Range),
		commands: commands(),
		facts:    list.DefaultFacts(),
		started:  time.Now().Truncate(time.Second),
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
		return newSession(ctx, srv, conn, implicit)
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
