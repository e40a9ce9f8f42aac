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

// A session is one client that is connected: what it says, who it is, what it has set, and what runs for it. The
// functions of commands get the whole session only if they log in, encrypt, or open a data connection. The others get
// the part that they need, see [onSettings], [onFile] and [byLibrary].
type session struct {
	shared    *shared
	cfg       *Config // of the server when the session began
	id        string  // never changes, so any goroutine may read it
	observers report.Observers
	client    *report.Client // as the observers know it
	log       *sessionlog.Session
	activity  *report.Activity // what administrators see
	ctx       context.Context  // ends with the session
	cancel    context.CancelCauseFunc

	dialogue dialogue
	identity identity
	settings settings
	data     dataPort
	engine   *engine.Engine
	op       *operation // the command being handled, nil for none
	aborted  bool       // ABOR has stopped a command and waits for its own reply
}

// shared is what the sessions of a server have in common, whatever its configuration.
type shared struct {
	commands map[string]command
	facts    list.Facts // of MLST and MLSD, until OPTS MLST
	started  time.Time
	engines  *engine.Server
	log      sessionlog.Log
	failures account.FailureLog
}

// A command is one row of the command table, and all that the server needs to know of the command.
type command struct {
	// run performs the command. It returns the reply, or an error that decides the reply. It may return both, and then
	// the error is for the observers.
	run      func(s *session, arg string) (wire.Reply, error)
	argument wire.Argument // how it is read
	login    bool          // refused with 530 before login
	transfer bool          // takes the parameters of the next transfer, also if it fails
	syntax   string        // as HELP and 501 show it, RFC 959 5.3

	kind   report.Kind // the event in the audit log
	starts bool        // a login
	reads  bool        // it may also just read, and then it is an event only if it has asked the storage for a change

	// after does what follows a reply that reports success. A reply that it returns is another one.
	after func(s *session) wire.Reply
}

// errSyntax reports an argument that the command cannot read. The reply is 501 with the syntax of the command.
var errSyntax = errors.New("argument cannot be read")

func newSession(ctx context.Context, shared *shared, cfg *Config, conn net.Conn, implicit bool) *session {
	s := &session{shared: shared, cfg: cfg, id: sessionlog.NewID(), engine: shared.engines.NewEngine()}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.dialogue = newDialogue(conn, implicit, s.ctx.Done())
	s.renew()
	remote := s.dialogue.conn.Remote()
	s.identity = identity{
		address: remote, networkCharset: cfg.Backend.Charset(remote),
		locale: reply.NewLocale(reply.Preferences{Bundle: cfg.Bundle, DefaultLanguage: cfg.DefaultLanguage}),
		// Strangers may be as many as the descriptors that they leave free. So the last ones are never theirs.
		guarded: &limits.Session{Addr: remote, BeforeLogin: limits.Sessions.Left(conn), Cut: s.cancel},
	}
	s.identity.setTenant(nil)
	s.client = &report.Client{ID: s.id, Remote: conn.RemoteAddr().String(),
		Address: remote.WithZone(""), Language: s.identity.locale.Tag()}
	s.observe()
	return s
}

// renew makes the settings those of a client that has set nothing yet.
func (s *session) renew() {
	s.settings = newSettings(s.shared.facts, s.cfg.TLS != nil)
	s.data = newDataPort(s.dialogue.implicit)
}

// observe makes the list of observers. The traces come first, because the log has their IDs.
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

// identify tells the observers what is known of the client, if that has changed.
func (s *session) identify() {
	c := *s.client
	if encrypted := s.dialogue.conn.Encrypted(); encrypted != c.TLS {
		c.TLS = encrypted
		c.TLSVersion, c.TLSCipher = s.dialogue.conn.Encryption()
	}
	s.identity.describe(&c)
	if c != *s.client {
		changed := c // c itself takes no memory of the heap, and is made for each command
		s.client = &changed
		s.observers.Identified(s.client)
	}
}

// reply returns a reply of one line in the client's language, as the function of a command does.
func (s *session) reply(code int, id i18n.ID, args ...string) (wire.Reply, error) {
	return s.identity.reply(code, id, args...)
}

func (s *session) write(b []byte) {
	s.dialogue.conn.Buffer(b...)
	s.flush()
}

// flush writes the buffered replies. The reading side meets the same error, and ends the session.
func (s *session) flush() {
	if err := s.dialogue.conn.Flush(); err != nil {
		s.log.Debug("reply not sent", "err", err)
		s.cancel(nil)
	}
}
