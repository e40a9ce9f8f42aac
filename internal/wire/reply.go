package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// A Reply is one reply (RFC 959 4.2). The lines in the middle of a longer reply
// begin with SP, so none of them begins with a number.
type Reply struct {
	Code  int
	Lines []string // without line ends
}

// NewReply makes a reply of its lines.
func NewReply(code int, lines ...string) Reply { return Reply{code, lines} }

// Preliminary says whether another reply follows.
func (r Reply) Preliminary() bool { return r.Code < 200 }

// AppendTo writes the reply as the bytes of the control connection: CR is
// padded (RFC 2640 3.1), IAC doubled (RFC 3659 2.2).
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
		b = append(AppendNVT(b, line), '\r', '\n')
	}
	return b
}

// AddLine adds a line that was read, without its end, and tells whether it is the
// last.
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

// AppendNVT appends text as a control connection carries it: CR is followed by
// NUL, and IAC is doubled.
func AppendNVT(b []byte, s string) []byte {
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
