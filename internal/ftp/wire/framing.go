package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
)

// MaxLine is the maximum length of a command line in bytes, without its CRLF. A pathname of 1,024 bytes with every
// CR padded uses half of it.
const MaxLine = 4096

// commandBuffer is the size of the read buffer of a session. It is small because most sessions are idle.
const commandBuffer = 512

// ErrLineTooLong reports a command line over MaxLine bytes. The line was read to its end, so the next command can
// follow.
var ErrLineTooLong = errors.New("command line too long")

// Bytes of Telnet (RFC 854).
const (
	telnetSE   = 240 // end of subnegotiation
	telnetSB   = 250 // subnegotiation
	telnetWILL = 251 // this and the next three name one option
	telnetWONT = 252
	telnetDO   = 253
	telnetDONT = 254
	telnetIAC  = 255
)

// maxRefusals limits the bytes of replies to Telnet options for one line. It is as much as a full read buffer can
// request.
const maxRefusals = commandBuffer

// A Line is a command line, or an error.
type Line struct {
	Text    string
	Literal string // Text with apparent Telnet commands in the argument; empty if it has none
	None    bool   // there were only Telnet commands
	Foreign string // ForeignTLS, ForeignPROXY or empty
	Err     error

	Refusals []byte // replies to requests for Telnet options
	Certain  int    // number of bytes of Refusals for requests that cannot be part of Literal
}

// A Reader reads command lines from the bytes of a control connection.
type Reader struct {
	in      *bufio.Reader
	begun   bool // Next has checked the first bytes
	line    []byte
	literal []byte // see Line

	lenient    bool // LF without CR ends every line, because it ended a line before login
	identified bool // USER was received, so pathnames may follow
	argument   bool // the line has an argument
	bareCRs    int  // number of CRs at the end of the line so far
	tooLong    bool
	unfinished atomic.Uint32 // bits of Unfinished

	refusals []byte // see Line
	certain  int    // number of bytes of refusals for requests before the argument
}

// Unfinished describes the content of an incomplete command line.
type Unfinished uint32

// Content of an incomplete line.
const (
	UnfinishedText Unfinished = 1 << iota
	UnfinishedCR
	UnfinishedLF
)

// Unfinished describes the incomplete line. It is 0 if the client has not begun one. Any goroutine may call it.
func (r *Reader) Unfinished() Unfinished { return Unfinished(r.unfinished.Load()) }

// NewReader returns a Reader for the bytes that a client sends.
func NewReader(r io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, commandBuffer)}
}

// Next returns the next command line without its line end. CR NUL is decoded to CR (RFC 2640, 3.1), and Telnet
// commands are removed (RFC 959, 2.3). For a request for a Telnet option, Next returns a Line without a command at
// once, because the client may wait for the reply.
//
// CRLF ends a line, even after more CRs. LF alone ends a line that cannot contain a pathname, such as every line
// before USER. If a line of the login ends with LF alone, LF ends all later lines too. Otherwise LF belongs to the
// pathname.
//
// If the stream ends within a line, Next returns the error of the underlying reader.
func (r *Reader) Next() *Line {
	if _, err := r.in.Peek(1); err != nil { // most clients are idle, so this wait uses little stack
		return &Line{Err: err}
	}
	if foreign := r.detectForeign(); foreign != "" {
		return &Line{Foreign: foreign, None: true} // the rest is not a line
	}
	return r.next()
}

// Other protocols that a client may start with.
const (
	ForeignTLS   = "TLS"   // implicit TLS (RFC 8446, 5.1) on a port for explicit TLS
	ForeignPROXY = "PROXY" // a header of the PROXY protocol, version 1 or 2
)

// detectForeign reports whether the first bytes of a client belong to another protocol. They arrive in one
// segment.
func (r *Reader) detectForeign() string {
	if r.begun {
		return ""
	}
	r.begun = true
	first, _ := r.in.Peek(r.in.Buffered())
	switch {
	case bytes.HasPrefix(first, []byte{0x16, 3}): // a handshake record of any version
		return ForeignTLS
	case bytes.HasPrefix(first, []byte("PROXY ")), bytes.HasPrefix(first, []byte("\r\n\r\n\x00\r\nQUIT\n")):
		return ForeignPROXY
	}
	return ""
}

func (r *Reader) next() *Line {
	r.line, r.literal, r.refusals, r.certain = r.line[:0], nil, nil, 0
	r.argument, r.bareCRs, r.tooLong = false, 0, false
	for {
		b, err := r.in.ReadByte()
		if err != nil {
			return &Line{Err: err}
		}
		switch {
		case b == telnetIAC:
			command, err := r.telnet()
			if err != nil {
				return &Line{Err: err}
			}
			if command == nil {
				break
			}
			if l := r.handleInterrupt(command); l != nil {
				return l
			}
			continue
		case b == '\r':
			r.markUnfinished(UnfinishedCR)
			next, err := r.in.ReadByte()
			switch {
			case err != nil:
				return &Line{Err: err}
			case next == '\n':
				return r.finish()
			case next != 0:
				_ = r.in.UnreadByte() // cannot fail after ReadByte
				r.bareCRs++
				continue
			}
		case b == '\n' && r.endsAtLF():
			return r.finish()
		case b == '\n':
			r.markUnfinished(UnfinishedLF)
		case b == ' ':
			r.argument = true
		}
		r.markUnfinished(UnfinishedText)
		r.keepCRs()
		r.add(b)
	}
}

// keepCRs appends the pending CRs before a byte that does not end the line.
func (r *Reader) keepCRs() {
	for ; r.bareCRs > 0 && !r.tooLong; r.bareCRs-- {
		r.add('\r')
	}
	r.bareCRs = 0
}

// markUnfinished adds to the description of the incomplete line.
func (r *Reader) markUnfinished(what Unfinished) {
	if now := r.Unfinished(); now&what == 0 {
		r.unfinished.Store(uint32(now | what))
	}
}

// endsAtLF reports whether LF without CR ends the current line. It makes the reader lenient if the client has not
// logged in with lines that end with CRLF.
func (r *Reader) endsAtLF() bool {
	verb, _, _ := ParseCommand(string(r.line))
	r.lenient = r.lenient || !r.identified || verb == "USER" || verb == "PASS"
	return r.lenient || !r.argument || !TakesPathname(verb)
}

// handleInterrupt handles a Telnet command within a line. It returns a Line if the client may wait for a reply to it.
func (r *Reader) handleInterrupt(command []byte) *Line {
	r.refuse(command)
	if !r.argument {
		r.certain = len(r.refusals)
		if len(r.line) == 0 && r.certain > 0 && !r.telnetFollows() {
			return &Line{Refusals: r.refusals, Certain: r.certain, None: true}
		}
		return nil
	}
	r.keepCRs()
	if r.literal == nil {
		r.literal = bytes.Clone(r.line)
	}
	if len(r.literal) < MaxLine {
		r.literal = append(r.literal, command...)
	}
	return nil
}

// add appends a byte to the line.
func (r *Reader) add(b byte) {
	if len(r.line) == MaxLine {
		r.tooLong = true
		return
	}
	r.line = append(r.line, b)
	if r.literal != nil {
		r.literal = append(r.literal, b)
	}
}

func (r *Reader) finish() *Line {
	l := &Line{Refusals: r.refusals, Certain: r.certain}
	if r.tooLong {
		l.Err = ErrLineTooLong
	} else {
		l.Text, l.Literal = string(r.line), string(r.literal)
	}
	switch verb, _, _ := ParseCommand(l.Text); verb {
	case "USER":
		r.identified = true
	case "REIN":
		r.identified = false
	}
	r.unfinished.Store(0)
	if r.literal = nil; cap(r.line) > commandBuffer {
		r.line = nil // release the memory of a long line
	}
	return l
}

// refuse adds the reply to a Telnet command. This server supports no options, so it replies to DO with WON'T and
// to WILL with DON'T, and to no other command (RFC 1123, 4.1.2.12; RFC 854).
func (r *Reader) refuse(command []byte) {
	const request = 3 // IAC, verb, option
	if len(command) != request || len(r.refusals)+request > maxRefusals {
		return
	}
	switch command[1] {
	case telnetDO:
		r.refusals = append(r.refusals, telnetIAC, telnetWONT, command[2])
	case telnetWILL:
		r.refusals = append(r.refusals, telnetIAC, telnetDONT, command[2])
	}
}

// telnetFollows reports whether the next byte is buffered and begins a Telnet command.
func (r *Reader) telnetFollows() bool {
	if r.in.Buffered() == 0 {
		return false
	}
	b, err := r.in.Peek(1)
	return err == nil && b[0] == telnetIAC
}

// telnet reads the bytes after an IAC and returns the whole Telnet command. It returns nil if the IAC is the data
// byte 255: if it is doubled, or if no command of RFC 854 follows.
func (r *Reader) telnet() (command []byte, err error) {
	b, err := r.in.ReadByte()
	switch {
	case err != nil || b == telnetIAC:
		return nil, err
	case b < telnetSE:
		_ = r.in.UnreadByte()
		return nil, nil
	case b >= telnetWILL:
		option, err := r.in.ReadByte()
		if option == '\r' || option == '\n' { // the line ends here; no client negotiates options 13 and 10
			_ = r.in.UnreadByte()
			return []byte{telnetIAC, b}, err
		}
		return []byte{telnetIAC, b, option}, err
	case b == telnetSB:
		for iac := false; ; {
			if b, err = r.in.ReadByte(); err != nil || iac && b == telnetSE {
				return []byte{}, err
			}
			iac = b == telnetIAC && !iac
		}
	}
	return []byte{telnetIAC, b}, nil
}

// ParseCommand splits a line at its first space. More spaces belong to the argument (RFC 2640, 3.1). A verb
// consists of ASCII letters and digits and is returned in capitals. Otherwise verb is empty.
func ParseCommand(line string) (verb, arg string, hasArg bool) {
	verb, arg, hasArg = strings.Cut(line, " ")
	upper := make([]byte, len(verb))
	for i := range len(verb) {
		c := verb[i]
		switch {
		case c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		default:
			return "", arg, hasArg
		}
		upper[i] = c
	}
	return string(upper), arg, hasArg
}
