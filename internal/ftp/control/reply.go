package control

import (
	"context"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// reply is a reply of one line in the session's language. It is what the function of a command returns.
func (s *session) reply(code int, id i18n.ID, args ...string) (wire.Reply, error) {
	return wire.NewReply(code, s.identity.text(id, args...)), nil
}

// say writes a reply that no command has asked for.
func (s *session) say(code int, id i18n.ID, args ...string) { s.finish(s.reply(code, id, args...)) }

// goOn keeps a preliminary reply, to be written together with the next.
func (s *session) goOn(r wire.Reply) {
	s.observers.CommandGoesOn(s.op.Context, s.op.command, r.Code, r.Lines)
	s.dialogue.buffer(r)
}

// context is that of the command that is being handled, or of the session.
func (s *session) context() context.Context {
	if s.op == nil {
		return s.ctx
	}
	return s.op.Context
}

func (s *session) write(b []byte) {
	s.dialogue.conn.Buffer(b...)
	s.flush()
}

// flush writes the replies that are kept. An error is left to the reading side, which will meet it too.
func (s *session) flush() {
	if err := s.dialogue.conn.Flush(); err != nil {
		s.log.Debug("reply not sent", "err", err)
		s.cancel(nil)
	}
}
