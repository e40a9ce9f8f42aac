package control

import (
	"context"
	"errors"
	"slices"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
)

// text renders a message in the session's language.
func (s *session) text(id i18n.ID, args ...string) string { return s.locale.Text(id, args...) }

// reply sends a reply of one line in the session's language.
func (s *session) reply(code int, id i18n.ID, args ...string) {
	s.send(wire.NewReply(code, s.text(id, args...)))
}

// send writes a reply to the client. An error is left to the reading side, which will meet it too.
func (s *session) send(r wire.Reply) {
	s.bufferReply(r)
	s.flush()
}

// bufferReply keeps a reply, to be written together with the next.
func (s *session) bufferReply(r wire.Reply) {
	sessionlog.LogReply(s.context(), s.log, sessionlog.Command{Verb: s.verb, Argument: s.argument}, r.Code, r.Lines)
	if !r.Preliminary() {
		s.observer.Replied(Outcome{Verb: s.verb, Argument: s.argument, Code: r.Code, Language: s.locale.Tag()})
	}
	s.closing = s.closing || r.Code == 421 // the last reply of a session (RFC 959 5.4)
	s.conn.BufferReply(r)
}

// context is that of the command that is being handled, or of the session.
func (s *session) context() context.Context {
	if s.op == nil {
		return s.ctx
	}
	return s.op.Context
}

func (s *session) write(b []byte) {
	s.conn.Buffer(b...)
	s.flush()
}

func (s *session) flush() {
	if err := s.conn.Flush(); err != nil {
		s.log.Debug("reply not sent", "err", err)
		s.cancel(nil)
	}
}

// replyError tells the client about an error.
func (s *session) replyError(err error) { s.send(s.errorReply(err)) }

// errorReply is the reply to an error of the storage, which it logs.
func (s *session) errorReply(err error) wire.Reply {
	s.refused(err)
	code, id, args := reply.ForError(err)
	text := s.text(id, args...)
	if reply.AboutFile(id) {
		text = s.locale.About(s.nameOf(err), text)
	}
	if s.transfer == nil { // else logTransfer tells
		s.log.InfoContext(s.context(), "command failed", "command", s.verb, "code", code, "err", err)
	}
	return wire.NewReply(code, text)
}

// nameOf is the name of the file that an error describes, empty where it describes none.
func (s *session) nameOf(err error) string {
	if named, ok := errors.AsType[*reply.FileError](err); ok {
		return named.Name
	}
	if s.verb == "RNTO" {
		return reply.MoveName(s.op.renaming, s.op.fileName, err)
	}
	return s.op.fileName
}

// greet sends 220 with the tenant's greeting, or a message where there is none. At the beginning of a session (RFC
// 959 5.4) the tenant is that of the host that the client has named to TLS.
func (s *session) greet(id i18n.ID, args ...string) {
	message := func(l *reply.Locale) []string { return []string{l.Text(id, slices.Clone(args)...)} }
	lines := reply.Greeting(s.locale, s.tenant, s.login)
	if lines == nil {
		lines = message(s.locale)
	}
	if english := s.locale.InEnglish(); s.cfg.BilingualGreeting && english != nil {
		more := reply.Greeting(english, s.tenant, s.login)
		if more == nil || slices.Equal(more, lines) { // the tenant has no English text
			more = message(english)
		}
		lines = append(lines, more...)
	}
	s.send(wire.NewReply(220, lines...))
}
