package control

import (
	"strings"
	"unicode"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/charset"
	"github.com/babelftp/babelftp/internal/wire"
)

// text renders a message in the session's language. What a client has sent is
// shown as one line of UTF-8.
func (s *session) text(id i18n.ID, args ...string) string {
	for i := range args {
		args[i] = strings.Map(printable, args[i])
	}
	return s.inCharset(s.lang.Text(id, args...))
}

// inCharset is a text as the client reads it: in the tenant's charset until the
// client has said that it reads UTF-8, if the charset has all its characters.
func (s *session) inCharset(text string) string {
	if charset := s.charset(); !charset.Raw() {
		text, _ = charset.Encode(text)
	}
	return text
}

// charset is the encoding of what the client reads, but for directories with
// one of their own.
func (s *session) charset() *charset.Encoding {
	if s.tenant == nil || s.utf8 && !s.tenant.Encoding.Raw() {
		return nil
	}
	return s.tenant.Encoding
}

// printable replaces control characters; strings.Map makes one replacement
// character of each byte that is no UTF-8.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return unicode.ReplacementChar
	}
	return r
}

// reply sends a reply of one line in the session's language.
func (s *session) reply(code int, id i18n.ID, args ...string) {
	s.send(wire.NewReply(code, s.text(id, args...)))
}

// send writes a reply to the client. An error is left to the reading side,
// which will meet it too.
func (s *session) send(r wire.Reply) {
	s.bufferReply(r)
	s.flush()
}

// bufferReply keeps a reply, to be written together with the next.
func (s *session) bufferReply(r wire.Reply) {
	if !r.Preliminary() {
		s.observer.Replied(s.verb, r.Code)
	}
	s.conn.BufferReply(r)
}

func (s *session) write(b []byte) {
	s.conn.Buffer(b...)
	s.flush()
}

func (s *session) flush() {
	if err := s.conn.Flush(); err != nil {
		s.log.Debug("reply not sent", "err", err)
		s.cancel()
	}
}
