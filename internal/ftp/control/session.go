package control

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/descriptors"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/filecmd"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/syntax"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/activity"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/users/account"
)

// A session is one control connection.
type session struct {
	server    *Server
	cfg       *Config // of the server when the session began
	observers report.Observers
	client    report.Client // as the observers know it
	log       *sessionlog.Session
	activity  *activity.Session // what administrators see
	ctx       context.Context   // ends with the session
	cancel    context.CancelCauseFunc
	done      <-chan struct{} // of ctx

	conn     *wire.Conn
	implicit bool // whether TLS came with the connection and stays

	tlsSession string // which TLS session of the control connection it is, see [dataconn.Handshake]

	queued  wire.Queue    // received while a command was running
	drain   chan struct{} // closed when the server is shutting down
	closing bool          // no further command is handled: the last reply was sent

	op *operation // the command being handled, nil for none

	locale *reply.Locale

	engine       *engine.Engine
	hostname     string          // from HOST
	tenant       *account.Tenant // from HOST or login
	name         string          // from USER
	password     string          // from PASS, until the engine has asked for it
	login        *account.Login
	failedLogins int
	loginUntil   limits.Deadline // of the login; commands do not prolong it
	limits       limits.Scopes   // of the server and the address, and after the login of the tenant and the user
	guarded      *limits.Session // what a ban cuts

	renaming   string          // what RNFR named, as a reply repeats it; empty for another command
	algorithm  string          // of HASH
	copySource *filecmd.Source // of SITE CPFR
	parameters syntax.TransferParameters
	data       dataSettings
	facts      list.Facts // of MLST and MLSD
	onlyTLS    bool       // whether the client has begun no login since the TLS handshake
	aborted    bool       // whether ABOR has stopped a command and waits for its own reply
}

func newSession(ctx context.Context, server *Server, conn net.Conn, implicit bool) *session {
	cfg := server.cfg.Load()
	s := &session{
		server:    server,
		cfg:       cfg,
		conn:      wire.NewConn(conn),
		implicit:  implicit,
		drain:     make(chan struct{}),
		facts:     list.DefaultFacts(),
		algorithm: syntax.DefaultHash,
		locale:    reply.NewLocale(reply.Preferences{Bundle: cfg.Bundle, DefaultLanguage: cfg.DefaultLanguage}),
	}
	s.client = report.Client{ID: sessionlog.NewID(), Remote: conn.RemoteAddr().String(),
		Address: s.conn.Remote().WithZone(""), Language: s.locale.Tag()}
	s.observe()
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.done = s.ctx.Done()
	// Strangers may be as many as the descriptors that they leave free. So the last ones are never theirs.
	s.guarded = &limits.Session{Addr: s.conn.Remote(), BeforeLogin: descriptors.Sessions.Left(conn), Cut: s.cancel}
	s.data = s.newDataSettings()
	return s
}

// observe makes the list of observers. The traces come first, because the log has their IDs.
func (s *session) observe() {
	if traces := s.cfg.Traces.Session(s.client); traces != nil {
		s.observers = append(s.observers, traces)
	}
	if s.cfg.Observe != nil {
		s.observers = append(s.observers, s.cfg.Observe(s.client)...)
	}
	s.activity = activity.New(s.client)
	s.log = s.server.log.Session(s.cfg.Logger, s.cfg.Debug, s.client)
	s.observers = append(s.observers, s.activity, s.log)
}

// identify tells the observers what is known of the client, if that has changed.
func (s *session) identify() {
	c := s.client
	c.Tenant, c.User, c.Language, c.TLS = "", "", s.locale.Tag(), s.conn.Encrypted()
	if s.tenant != nil {
		c.Tenant = s.tenant.Name
	}
	if s.login != nil {
		c.Tenant, c.User = s.login.Tenant.Name, s.login.Name
	}
	if c != s.client {
		s.client = c
		s.observers.Identified(c)
	}
}

// Drain lets the session end when its command has ended.
func (s *session) Drain() { close(s.drain) }

// End ends the session with its command. Any goroutine may call it.
func (s *session) End() { s.cancel(nil) }

// Cut does the same, and writes no reply.
func (s *session) Cut() {
	s.End()
	s.conn.Cut()
}

// Run is the session. It returns when the control connection is closed and everything that belonged to it has ended.
func (s *session) Run() {
	scopes, leave, err := s.cfg.Limits.Enter(s.guarded)
	if err == nil && s.guarded.BeforeLogin == 0 {
		leave()
		err = &limits.Error{Limit: "descriptors"}
	}
	if err != nil {
		s.refuse(err)
		return
	}
	s.limits = scopes
	s.observers.SessionOpened(s.ctx)
	defer s.observers.SessionClosed()
	defer s.end(leave)
	s.loginUntil = limits.In(s.cfg.LoginTimeout)
	defer func() {
		if r := recover(); r != nil {
			s.cfg.Guard.Report(s.log.Logger, "session", r)
			s.say(421, i18n.InternalError)
		}
	}()
	if s.implicit && !s.begunImplicitTLS() || s.drained() {
		return
	}
	s.finish(s.greeting(i18n.ServiceReady), nil)
	s.cfg.Guard.Go("control connection", func() { s.conn.Read(s.done) })
	for !s.closing {
		next, ok := s.next()
		if !ok {
			return
		}
		s.foreign(next.Foreign)
		text, refusals := s.commandText(next)
		s.conn.Buffer(refusals...)
		switch {
		case next.None:
			s.flush()
		case next.Err != nil:
			s.say(500, i18n.LineTooLong)
		default:
			s.dispatch(text)
			s.conn.Resume(next, s.done)
		}
	}
}

// refuse answers a connection that is one too many, and a session that a ban has cut. Before implicit TLS the answer
// would cost a handshake, which is more than the limit saves, and the server just closes the connection.
func (s *session) refuse(err error) {
	s.refused(err)
	if !s.implicit || s.conn.Encrypted() {
		s.say(421, reply.ForRefusal(err))
	}
	s.cancel(nil)
	s.conn.Close()
}

// drained tells whether the server is shutting down.
func (s *session) drained() bool {
	select {
	case <-s.drain:
		return true
	default:
		return false
	}
}

// end ends what belongs to the session. A client that sees the end of the connection can connect again, so its place
// is free before.
func (s *session) end(leave func()) {
	switch cut := context.Cause(s.ctx); {
	case s.closing:
	case errors.Is(cut, syscall.EBUSY):
		s.refuse(cut)
	case errors.Is(cut, dataconn.ErrDisconnected) && (!s.implicit || s.conn.Encrypted()):
		s.log.Info("session ended by an administrator")
		s.say(421, i18n.Disconnected)
	case s.drained() && (!s.implicit || s.conn.Encrypted()):
		s.say(421, i18n.ShuttingDown)
	}
	if s.onlyTLS && !s.closing { // some clients look at the certificate after the handshake
		if more, first := s.log.Seldom("only TLS", ""); first {
			s.log.Info("client left after the TLS handshake, before a login; the log shows one a minute for an address",
				"hint", sessionlog.CertificateHint, "more", more)
		}
	}
	s.closeDataPort()
	s.endLogin()
	s.stopEngine()
	s.cancel(nil)
	leave()
	s.conn.Close()
}

// next waits for the next command. It returns false when the session is over.
func (s *session) next() (wire.Line, bool) {
	if s.drained() || s.ctx.Err() != nil {
		return wire.Line{}, false
	}
	timeout, timedOut := s.timeout()
	if timeout <= 0 {
		timedOut()
		return wire.Line{}, false
	}
	if first, ok := s.queued.Next(); ok {
		return first, true
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case l, ok := <-s.conn.Lines():
		return l, ok
	case <-timer.C:
		timedOut()
	case <-s.drain:
	case <-s.done:
	}
	return wire.Line{}, false
}

// timeout is how long the client may take to send a command, and what answers a client that takes longer.
func (s *session) timeout() (time.Duration, func()) {
	idle := s.cfg.IdleTimeout
	if s.login != nil {
		idle = cmp.Or(s.login.IdleTimeout, idle)
	}
	if left, within := s.loginUntil.Within(idle); within {
		return left, func() {
			s.refused(&limits.Error{Limit: limits.LoginTimeout})
			s.say(421, i18n.LoginTimeout)
		}
	}
	return idle, func() { s.say(421, i18n.IdleTimeout, strconv.Itoa(int(idle/time.Second))) }
}

func (s *session) notImplemented(string) (wire.Reply, error) {
	return s.reply(502, i18n.NotImplemented, s.op.command.Name)
}
