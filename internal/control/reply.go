package control

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/charset"
)

// replyTimeout is how long a client may leave a reply unread before its
// session ends.
const replyTimeout = time.Minute

// A reply is one reply of RFC 959 4.2. Lines in the middle of a longer reply
// begin with SP, so that none of them begins with a number.
type reply struct {
	code  int
	lines []string
}

func (r reply) preliminary() bool { return r.code < 200 }

// appendTo writes the reply as the bytes of the control connection: CR is
// padded (RFC 2640 3.1), IAC doubled (RFC 3659 2.2).
func (r reply) appendTo(b []byte) []byte {
	code := strconv.Itoa(r.code)
	last := len(r.lines) - 1
	for i, line := range r.lines {
		switch {
		case i == last:
			b = append(append(b, code...), ' ')
		case i == 0:
			b = append(append(b, code...), '-')
		case !strings.HasPrefix(line, " "):
			b = append(b, ' ')
		}
		b = append(appendNVT(b, line), '\r', '\n')
	}
	return b
}

func appendNVT(b []byte, s string) []byte {
	for i := range len(s) {
		b = append(b, s[i])
		switch s[i] {
		case '\r':
			b = append(b, 0)
		case telnetIAC:
			b = append(b, telnetIAC)
		}
	}
	return b
}

// add adds a line that the engine has written, and tells whether it is the last.
func (r *reply) add(line string) (complete bool, err error) {
	if len(r.lines) == 0 {
		if len(line) < 4 || line[3] != ' ' && line[3] != '-' {
			return false, fmt.Errorf("engine's reply without a code: %q", line)
		}
		if r.code, err = strconv.Atoi(line[:3]); err != nil {
			return false, fmt.Errorf("engine's reply without a code: %q", line)
		}
	}
	if len(line) < 4 || line[:3] != strconv.Itoa(r.code) {
		r.lines = append(r.lines, line)
		return false, nil
	}
	r.lines = append(r.lines, line[4:])
	return line[3] == ' ', nil
}

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

// say sends a reply of one line in the session's language.
func (s *session) say(code int, id i18n.ID, args ...string) {
	s.send(reply{code, []string{s.text(id, args...)}})
}

// send writes a reply to the client. An error is left to the reading side,
// which will meet it too.
func (s *session) send(r reply) {
	s.hold(r)
	s.flush()
}

// hold keeps a reply, to be written together with the next.
func (s *session) hold(r reply) {
	if !r.preliminary() {
		s.observer.Replied(s.verb, r.code)
	}
	s.out = r.appendTo(s.out)
}

func (s *session) write(b []byte) {
	s.out = append(s.out, b...)
	s.flush()
}

func (s *session) flush() {
	b := s.out
	if s.out = b[:0]; cap(b) > maxCommandLine {
		s.out = nil // a long help or status text is no reason to keep its memory
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(replyTimeout))
	if _, err := s.conn.Write(b); err != nil {
		s.log.Debug("reply not sent", "err", err)
		s.cancel()
	}
}

// charsetName is a charset as IANA and people write it.
func charsetName(encoding *charset.Encoding) string {
	if encoding.Raw() {
		return "8-BIT"
	}
	return strings.ToUpper(encoding.String())
}

// controlWriter streams the middle lines of a long reply.
type controlWriter struct{ s *session }

var _ io.Writer = controlWriter{}

func (w controlWriter) Write(b []byte) (int, error) {
	w.s.write(b)
	return len(b), w.s.ctx.Err()
}
