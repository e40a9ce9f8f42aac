package control

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/users/account"
)

// A session serves one connected client. Only commands that log in, encrypt or open a data connection get the
// whole session. Other commands get the part that they need, see [onState], [onFile] and [byLibrary].
type session struct {
	shared    *shared
	cfg       *Config // configuration of the server when the session began
	id        string  // constant, so any goroutine may read it
	observers report.Observers
	client    *report.Client // as last reported to the observers
	log       *sessionlog.Session
	activity  *report.Activity // shown to administrators
	ctx       context.Context  // canceled when the session ends
	cancel    context.CancelCauseFunc

	dialogue dialogue
	identity identity
	state    commandState
	data     dataPort
	engine   *engine.Engine
	op       *operation // current command, nil between commands
	aborted  bool       // ABOR has stopped a command and is queued for its own reply
}

// shared holds what all sessions of a server share, whatever their configuration.
type shared struct {
	commands map[string]command
	facts    list.Facts // default facts of MLST and MLSD
	started  time.Time
	engines  *engine.Server
	log      sessionlog.Log
	failures account.FailureLog
}

// A command is a row of the command table.
type command struct {
	// run performs the command. It returns the reply, or an error that decides the reply. If it returns both, the
	// error is only reported to the observers.
	run             func(s *session, arg string) (wire.Reply, error)
	argument        wire.Argument // syntax of the argument
	needsLogin      bool          // refused with 530 before login
	beforeChange    bool          // allowed to users who must change the password, like commands without needsLogin
	takesParameters bool          // consumes the parameters set for the next transfer, even if it fails
	syntax          string        // as shown by HELP and 501 (RFC 959, 5.3)

	kind   report.Kind // event in the audit log
	starts bool        // starts a login
	reads  bool        // may only read: there is no audit event unless the command has changed the storage

	// after runs once a reply that reports success was sent. If it returns a reply, that is sent too.
	after func(s *session) wire.Reply
}

// errSyntax reports an invalid argument. The reply is 501 with the syntax of the command.
var errSyntax = errors.New("invalid argument")

func newSession(ctx context.Context, shared *shared, cfg *Config, conn net.Conn, implicit bool) *session {
	s := &session{shared: shared, cfg: cfg, id: sessionlog.NewID(), engine: shared.engines.NewEngine()}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.dialogue = newDialogue(conn, implicit, s.ctx.Done())
	s.resetState()
	remote := s.dialogue.conn.Remote()
	s.identity = identity{
		address: remote, networkCharset: cfg.Backend.Charset(remote),
		locale: reply.NewLocale(reply.Preferences{Bundle: cfg.Bundle, DefaultLanguage: cfg.DefaultLanguage}),
		// Sessions before login may not use the last descriptors, which are reserved for users.
		guarded: &limits.Session{Addr: remote, BeforeLogin: limits.SessionReserve.Left(conn), Cut: s.cancel},
	}
	s.identity.setTenant(nil)
	s.client = &report.Client{ID: s.id, Remote: conn.RemoteAddr().String(),
		Address: remote.WithZone(""), Language: s.identity.locale.Tag()}
	s.observe()
	return s
}

// resetState resets the command state and the data port.
func (s *session) resetState() {
	s.state = newCommandState(s.shared.facts, s.cfg.TLS != nil)
	s.data = newDataPort(s.dialogue.implicit)
}

// observe creates the observers. The tracer comes first, because log lines include its IDs.
func (s *session) observe() {
	if traces := s.cfg.Traces.Session(s.client); traces != nil {
		s.observers = append(s.observers, traces)
	}
	if s.cfg.Observe != nil {
		s.observers = append(s.observers, s.cfg.Observe(s.client)...)
	}
	s.activity = report.NewActivity(s.client)
	s.log = s.shared.log.Session(s.cfg.Logger, s.cfg.Debug, s.client)
	s.observers = append(s.observers, s.activity, s.log)
}

// identify reports the client to the observers if what is known about it has changed.
func (s *session) identify() {
	c := *s.client
	if encrypted := s.dialogue.conn.Encrypted(); encrypted != c.TLS {
		c.TLS = encrypted
		c.TLSVersion, c.TLSCipher = s.dialogue.conn.Encryption()
	}
	s.identity.describe(&c)
	if c != *s.client {
		changed := c // c stays on the stack, because most commands change nothing
		s.client = &changed
		s.observers.Identified(s.client)
	}
}

// reply returns a reply of one line in the client's language.
func (s *session) reply(code int, id i18n.ID, args ...string) (wire.Reply, error) {
	return s.identity.reply(code, id, args...)
}

func (s *session) write(b []byte) {
	s.dialogue.conn.Buffer(b...)
	s.flush()
}

// flush writes the buffered replies. If that fails, the reader gets the same error and ends the session.
func (s *session) flush() {
	if err := s.dialogue.conn.Flush(); err != nil {
		s.log.Debug("reply not sent", "err", err)
		s.cancel(nil)
	}
}
