package control

import (
	"context"
	"log/slog"
	"net"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/account"
	"github.com/babelftp/babelftp/internal/engine"
	"github.com/babelftp/babelftp/internal/ftplist"
	"github.com/babelftp/babelftp/internal/reply"
	"github.com/babelftp/babelftp/internal/syntax"
	"github.com/babelftp/babelftp/internal/wire"
)

// A session is one control connection.
type session struct {
	server   *Server
	observer Observer
	log      *slog.Logger
	ctx      context.Context // ends with the session
	cancel   context.CancelFunc
	done     <-chan struct{} // of ctx

	conn     *wire.Conn
	implicit bool // whether TLS came with the connection and stays

	queued  []wire.Line   // received while a command was running
	drain   chan struct{} // closed when the server is shutting down
	closing bool          // no further command is handled

	verb     string // of the command being handled
	argument string // of it, as received
	op       *operation

	locale *reply.Locale

	engine       *engine.Engine
	hostname     string          // from HOST
	tenant       *account.Tenant // from HOST or login
	name         string          // from USER
	password     string          // from PASS, until the engine has asked for it
	login        *account.Login
	failedLogins int

	renaming   bool   // whether RNFR was the command before
	algorithm  string // of HASH
	copySource string // what SITE CPFR named, where the storage has it
	parameters syntax.TransferParameters
	data       dataSettings
	facts      ftplist.Facts // of MLST and MLSD
	transfer   *transfer     // the one that is running
	aborted    bool          // whether ABOR has stopped one and waits for its own reply
}

func newSession(ctx context.Context, server *Server, conn net.Conn, implicit bool) *session {
	s := &session{
		server:    server,
		observer:  server.cfg.Observer,
		log:       server.cfg.Logger.With("remote", conn.RemoteAddr().String()),
		conn:      wire.NewConn(conn),
		implicit:  implicit,
		drain:     make(chan struct{}),
		facts:     ftplist.DefaultFacts(),
		algorithm: syntax.DefaultHash,
		locale:    reply.NewLocale(reply.Preferences{Bundle: server.cfg.Bundle, DefaultLanguage: server.cfg.DefaultLanguage}),
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.done = s.ctx.Done()
	s.data = s.newDataSettings()
	return s
}

// Drain lets the session end when its command has ended.
func (s *session) Drain() { close(s.drain) }

// Cut ends the session with its command. Any goroutine may call it.
func (s *session) Cut() {
	s.cancel()
	s.conn.Cut()
}

// Run is the session. It returns when the control connection is closed and
// everything that belonged to it has ended.
func (s *session) Run() {
	s.observer.SessionOpened()
	defer s.observer.SessionClosed()
	defer s.end()
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("session ended by a panic; report it as a bug", "panic", r, "stack", string(debug.Stack()))
			s.reply(421, i18n.InternalError)
		}
	}()
	if s.implicit && !s.startTLS(s.conn.StartImplicitTLS) {
		return
	}
	s.greet(i18n.ServiceReady)
	go s.conn.Read(s.done)
	for !s.closing {
		next, ok := s.next()
		if !ok {
			return
		}
		text, refusals := s.commandText(next)
		s.conn.Buffer(refusals...)
		switch {
		case next.None:
			s.flush()
		case next.Err != nil:
			s.verb = ""
			s.reply(500, i18n.LineTooLong)
		default:
			s.dispatch(text)
			s.conn.Resume(next, s.done)
		}
	}
}

func (s *session) end() {
	s.data.Close()
	s.stopEngine()
	s.cancel()
	s.conn.Close()
}

// next waits for the next command. It returns false when the session is over.
func (s *session) next() (wire.Line, bool) {
	select {
	case <-s.drain:
		s.reply(421, i18n.ShuttingDown)
		return wire.Line{}, false
	default:
	}
	if len(s.queued) > 0 {
		first := s.queued[0]
		s.queued = s.queued[1:]
		return first, true
	}
	s.queued = nil
	timeout := s.server.cfg.IdleTimeout
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case l, ok := <-s.conn.Lines():
		return l, ok
	case <-timer.C:
		s.verb = ""
		s.reply(421, i18n.IdleTimeout, strconv.Itoa(int(timeout/time.Second)))
	case <-s.drain:
		s.verb = ""
		s.reply(421, i18n.ShuttingDown)
	case <-s.done:
	}
	return wire.Line{}, false
}

func (s *session) notImplemented(string) { s.reply(502, i18n.NotImplemented, s.verb) }
