package control

import (
	"context"
	"slices"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// text renders a message in the session's language.
func (s *session) text(id i18n.ID, args ...string) string { return s.locale.Text(id, args...) }

// reply is a reply of one line in the session's language. It is what the function of a command returns.
func (s *session) reply(code int, id i18n.ID, args ...string) (wire.Reply, error) {
	return wire.NewReply(code, s.text(id, args...)), nil
}

// say writes a reply that no command has asked for.
func (s *session) say(code int, id i18n.ID, args ...string) { s.finish(s.reply(code, id, args...)) }

// goOn keeps a preliminary reply, to be written together with the next.
func (s *session) goOn(r wire.Reply) {
	s.observers.CommandGoesOn(s.op.Context, s.op.command, r.Code, r.Lines)
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

// flush writes the replies that are kept. An error is left to the reading side, which will meet it too.
func (s *session) flush() {
	if err := s.conn.Flush(); err != nil {
		s.log.Debug("reply not sent", "err", err)
		s.cancel(nil)
	}
}

// greeting is 220 with the tenant's greeting, or a message where there is none. At the beginning of a session (RFC
// 959 5.4) the tenant is that of the host that the client has named to TLS.
func (s *session) greeting(id i18n.ID, args ...string) wire.Reply {
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
	return wire.NewReply(220, lines...)
}
