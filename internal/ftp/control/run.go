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

// Drain implements [runner].
func (s *session) Drain() { close(s.dialogue.drain) }

// End implements [runner].
func (s *session) End() { s.cancel(nil) }

// Cut implements [runner].
func (s *session) Cut() {
	s.End()
	s.dialogue.conn.Cut()
}

// Run serves the session. It returns when the control connection is closed and everything that belonged to the
// session has ended. Most sessions wait in next for a command, so other work is in functions of its own whose
// stack is not kept.
func (s *session) Run() {
	scopes, leave, err := s.cfg.Limits.Admit(s.identity.guarded)
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
	defer s.recoverPanic()
	if !s.begin() {
		return
	}
	for !s.dialogue.closing {
		l := s.next()
		if l == nil {
			return
		}
		s.handleLine(l)
	}
}

// begin greets the client and starts reading the control connection. It returns false if the session has ended.
func (s *session) begin() bool {
	s.observers.SessionOpened(s.ctx)
	s.dialogue.loginUntil = limits.In(s.cfg.LoginTimeout)
	if s.dialogue.implicit && !s.startImplicitTLS() || s.dialogue.drained() {
		return false
	}
	s.finish(s.identity.greeting(i18n.ServiceReady), nil)
	s.cfg.Guard.Go("control connection", func() { s.dialogue.conn.Read(s.dialogue.done) })
	return true
}

// handleLine handles a line from the client.
func (s *session) handleLine(l *wire.Line) {
	if l.Foreign != "" {
		s.refuseForeign(l.Foreign)
		return
	}
	text, refusals := s.identity.commandText(l)
	s.dialogue.conn.Buffer(refusals...)
	switch {
	case l.None:
		s.flush()
	case l.Err != nil:
		s.sendReply(500, i18n.LineTooLong)
	default:
		s.dispatch(text)
		s.dialogue.conn.Resume(l, s.dialogue.done)
	}
}

// refuseForeign ends the session of a client that speaks another protocol. The client behind a load balancer does not
// know of the PROXY header that was sent for it. If the session went on, this client would take each reply for the
// reply to its next command.
func (s *session) refuseForeign(protocol string) {
	s.dialogue.closing = true
	if protocol == wire.ForeignPROXY {
		s.sendReply(500, i18n.UnknownCommand)
		s.sendReply(421, i18n.Goodbye)
	}
	hint := map[string]string{
		wire.ForeignTLS: "the client was disconnected: let it use explicit TLS, or the port of tls.implicit_listen",
		wire.ForeignPROXY: "the header was not believed, and the client was disconnected: if a load balancer sent it, " +
			"name its network in proxy_protocol.trusted",
	}[protocol]
	if more, first := s.log.SampleStranger("foreign", protocol); first {
		s.log.Info("client used another protocol; logged once a minute for each address",
			"protocol", protocol, "hint", hint, "more", more)
	}
}

// refuse ends a connection over the limit, or a session that a ban has cut, with reply 421. Before implicit TLS it
// just closes the connection, because the handshake for a reply would cost more than the limit saves.
func (s *session) refuse(err error) {
	s.reportLimit(err)
	if s.dialogue.readable() {
		s.sendReply(421, reply.ForRefusal(err))
	}
	s.cancel(nil)
	s.dialogue.conn.Close()
}

// recoverPanic ends the session with 421 after a panic. Reporting can panic again, for example in an observer, so
// the cleanup is in end, which runs in any case.
func (s *session) recoverPanic() {
	if r := recover(); r != nil {
		s.dialogue.closing = true
		s.cfg.Guard.Report(s.log.Logger, "session", r)
		s.sendReply(421, i18n.InternalError)
	}
}

// end releases everything that belongs to the session. The slot in the limits is free before the connection
// closes, because the client may reconnect as soon as it sees the close.
func (s *session) end(leave func()) {
	defer s.observers.SessionClosed()
	s.sendLastReply()
	if s.identity.onlyTLS && !s.dialogue.closing { // some clients leave to ask the user about the certificate
		if more, first := s.log.SampleStranger("only TLS", ""); first {
			s.log.Info("client disconnected after the TLS handshake, before logging in; logged once a minute for each address",
				"hint", sessionlog.CertificateHint, "more", more)
		}
	}
	s.logUnfinishedLine()
	s.closeDataPort()
	s.endLogin()
	s.cancel(nil)
	s.engine.Stop() // after cancel, so that a command that is still running cannot start the engine again
	leave()
	s.dialogue.conn.Close()
}

// logUnfinishedLine logs a session that ends while the server waits for the end of a command. The client got no
// reply to the command, so its user only sees a timeout.
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
	if more, first := s.log.SampleStranger("unfinished line", hint); first {
		s.log.Info("session ended in the middle of a command; logged once a minute for each address", "hint", hint, "more", more)
	}
}

// sendLastReply sends the reason to a waiting client if the server ends the session.
func (s *session) sendLastReply() {
	switch cut := context.Cause(s.ctx); {
	case s.dialogue.closing:
	case errors.Is(cut, syscall.EBUSY):
		s.refuse(cut)
	case errors.Is(cut, dataconn.ErrDisconnected) && s.dialogue.readable():
		s.log.Info("session ended by an administrator")
		s.sendReply(421, i18n.Disconnected)
	case s.dialogue.drained() && s.dialogue.readable():
		s.sendReply(421, i18n.ShuttingDown)
	}
}

// next waits for the next command. It returns nil if the session is over, and first sends 421 to a client that was
// idle for too long.
func (s *session) next() *wire.Line {
	l, err := s.dialogue.next(s.cfg.IdleTimeout, s.cfg.EngineIdle, s.engine.Stop)
	switch {
	case errors.Is(err, errLoginTime):
		s.reportLimit(&limits.Error{Limit: limits.LoginTimeout})
		s.sendReply(421, i18n.LoginTimeout)
	case errors.Is(err, errIdle):
		s.sendReply(421, i18n.IdleTimeout, strconv.Itoa(int(s.cfg.IdleTimeout/time.Second)))
	}
	return l
}
