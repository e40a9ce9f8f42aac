package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// A Reply is one reply (RFC 959, 4.2). The middle lines of a multi-line reply begin with a space, so that none
// begins with a number.
type Reply struct {
	Code  int
	Lines []string // without line ends
}

// NewReply returns a reply with these lines.
func NewReply(code int, lines ...string) Reply { return Reply{code, lines} }

// Preliminary reports whether another reply follows.
func (r Reply) Preliminary() bool { return r.Code < 200 }

// AppendTo appends the encoded reply, each line as in [AppendLine].
func (r Reply) AppendTo(b []byte) []byte {
	code := strconv.Itoa(r.Code)
	last := len(r.Lines) - 1
	for i, line := range r.Lines {
		switch {
		case i == last:
			b = append(append(b, code...), ' ')
		case i == 0:
			b = append(append(b, code...), '-')
		case !strings.HasPrefix(line, " "):
			b = append(b, ' ')
		}
		b = append(AppendLine(b, line), '\r', '\n')
	}
	return b
}

// AddLine parses a line without its line end and adds it. It reports whether the reply is complete.
func (r *Reply) AddLine(line string) (complete bool, err error) {
	if len(r.Lines) == 0 {
		if len(line) < 4 || line[3] != ' ' && line[3] != '-' {
			return false, fmt.Errorf("reply without a code: %q", line)
		}
		if r.Code, err = strconv.Atoi(line[:3]); err != nil {
			return false, fmt.Errorf("reply without a code: %q", line)
		}
	}
	if len(line) < 4 || line[:3] != strconv.Itoa(r.Code) {
		r.Lines = append(r.Lines, line)
		return false, nil
	}
	r.Lines = append(r.Lines, line[4:])
	return line[3] == ' ', nil
}

// AppendLine appends the text of a reply line. IAC is doubled (RFC 3659, 2.2). CR and LF are replaced with their
// Unicode symbols, because a client would take either for the end of the line, and the rest for another reply.
func AppendLine(b []byte, s string) []byte {
	for i := range len(s) {
		switch s[i] {
		case '\r':
			b = append(b, "\u240d"...)
		case '\n':
			b = append(b, "\u240a"...)
		case telnetIAC:
			b = append(b, telnetIAC, telnetIAC)
		default:
			b = append(b, s[i])
		}
	}
	return b
}
