package control

import (
	"context"
	"errors"
	"strconv"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
)

// Drain lets the session end when its command has ended.
func (s *session) Drain() { close(s.dialogue.drain) }

// End ends the session with its command. Any goroutine may call it.
func (s *session) End() { s.cancel(nil) }

// Cut does the same, and writes no reply.
func (s *session) Cut() {
	s.End()
	s.dialogue.conn.Cut()
}

// Run is the session. It returns when the control connection is closed and everything that belonged to it has ended.
// Most sessions wait for a command. So what they have done before is in other functions, whose stack they do not keep.
func (s *session) Run() {
	scopes, leave, err := s.cfg.Limits.Enter(s.identity.guarded)
	if err == nil && s.identity.guarded.BeforeLogin == 0 {
		leave()
		err = &limits.Error{Limit: limits.Descriptors}
	}
	if err != nil {
		s.refuse(err)
		return
	}
	s.identity.limits = scopes
	defer s.end(leave)
	defer s.survivePanic()
	if !s.begin() {
		return
	}
	for !s.dialogue.closing {
		l := s.next()
		if l == nil {
			return
		}
		s.received(l)
	}
}

// begin greets the client, and lets the control connection be read. It returns false where the session ends before.
func (s *session) begin() bool {
	s.observers.SessionOpened(s.ctx)
	s.dialogue.loginUntil = limits.In(s.cfg.LoginTimeout)
	if s.dialogue.implicit && !s.begunImplicitTLS() || s.dialogue.drained() {
		return false
	}
	s.finish(s.identity.greeting(i18n.ServiceReady), nil)
	s.cfg.Guard.Go("control connection", func() { s.dialogue.conn.Read(s.dialogue.done) })
	return true
}

// received handles a line of the client.
func (s *session) received(l *wire.Line) {
	s.foreign(l.Foreign)
	text, refusals := s.identity.commandText(l)
	s.dialogue.conn.Buffer(refusals...)
	switch {
	case l.None:
		s.flush()
	case l.Err != nil:
		s.say(500, i18n.LineTooLong)
	default:
		s.dispatch(text)
		s.dialogue.conn.Resume(l, s.dialogue.done)
	}
}

// foreign tells the log of a client that speaks another protocol, empty for none.
func (s *session) foreign(protocol string) {
	if protocol == "" {
		return
	}
	advice := map[string]string{
		wire.ForeignTLS: "the client was disconnected: let it use explicit TLS, or the port of tls.implicit_listen",
		wire.ForeignPROXY: "the header was not believed: if a load balancer sent it, name its network in " +
			"proxy_protocol.trusted",
	}[protocol]
	if more, first := s.log.Seldom("foreign", protocol); first {
		s.log.Info("client began with another protocol; the log shows one a minute for an address",
			"protocol", protocol, "advice", advice, "more", more)
	}
}

// refuse answers a connection that is one too many, and a session that a ban has cut. Before implicit TLS the answer
// would cost a handshake, which is more than the limit saves, and the server just closes the connection.
func (s *session) refuse(err error) {
	s.refused(err)
	if s.dialogue.readable() {
		s.say(421, reply.ForRefusal(err))
	}
	s.cancel(nil)
	s.dialogue.conn.Close()
}

// survivePanic ends the session with 421 after a panic. That may panic again, such as where an observer does. So it
// stands apart from end, which is done all the same.
func (s *session) survivePanic() {
	if r := recover(); r != nil {
		s.dialogue.closing = true
		s.cfg.Guard.Report(s.log.Logger, "session", r)
		s.say(421, i18n.InternalError)
	}
}

// end ends what belongs to the session. A client that sees the end of the connection can connect again, so its place
// is free before.
func (s *session) end(leave func()) {
	defer s.observers.SessionClosed()
	s.sayWhyItEnds()
	if s.identity.onlyTLS && !s.dialogue.closing { // some clients look at the certificate after the handshake
		if more, first := s.log.Seldom("only TLS", ""); first {
			s.log.Info("client left after the TLS handshake, before a login; the log shows one a minute for an address",
				"hint", sessionlog.CertificateHint, "more", more)
		}
	}
	s.logUnfinishedLine()
	s.closeDataPort()
	s.endLogin()
	s.cancel(nil)
	s.engine.Stop() // after cancel, so that a command which is still running starts no other
	leave()
	s.dialogue.conn.Close()
}

// logUnfinishedLine logs that the session ends while the server waits for the end of a command. The client got no
// reply to it, so its user only sees a timeout.
func (s *session) logUnfinishedLine() {
	line := s.dialogue.conn.Unfinished()
	if line == 0 {
		return
	}
	hint := "the end of the command is missing: CR LF"
	switch {
	case line&wire.UnfinishedLF != 0:
		hint = "the client ended the command with LF, and the commands before its login with CR LF: LF may be part of a " +
			"pathname then; let the client always send CR LF, or always LF"
	case line&wire.UnfinishedCR != 0:
		hint = "the client ended the command with CR: let it send CR LF"
	}
	if more, first := s.log.Seldom("unfinished line", hint); first {
		s.log.Info("session ended within a command; the log shows one a minute for an address", "hint", hint, "more", more)
	}
}

// sayWhyItEnds tells a client that waits why the session ends, where the reason is none of its own.
func (s *session) sayWhyItEnds() {
	switch cut := context.Cause(s.ctx); {
	case s.dialogue.closing:
	case errors.Is(cut, syscall.EBUSY):
		s.refuse(cut)
	case errors.Is(cut, dataconn.ErrDisconnected) && s.dialogue.readable():
		s.log.Info("session ended by an administrator")
		s.say(421, i18n.Disconnected)
	case s.dialogue.drained() && s.dialogue.readable():
		s.say(421, i18n.ShuttingDown)
	}
}

// next waits for the next command. It returns nil when the session is over, and tells a client that has sent none in
// time.
func (s *session) next() *wire.Line {
	l, err := s.dialogue.next(s.cfg.IdleTimeout, s.cfg.EngineIdle, s.engine.Stop)
	switch {
	case errors.Is(err, errLoginTime):
		s.refused(&limits.Error{Limit: limits.LoginTimeout})
		s.say(421, i18n.LoginTimeout)
	case errors.Is(err, errIdle):
		s.say(421, i18n.IdleTimeout, strconv.Itoa(int(s.cfg.IdleTimeout/time.Second)))
	}
	return l
}
