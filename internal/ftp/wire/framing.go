package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
)

// MaxLine is the maximum length of a command line in bytes, without its CRLF. A
// pathname of 1,024 bytes with every CR padded takes half of it.
const MaxLine = 4096

// commandBuffer is the read buffer of a session; it stays small because most
// sessions are idle.
const commandBuffer = 512

// ErrLineTooLong reports a command line over MaxLine bytes; it has been
// read up to its end, so that the next command can follow.
var ErrLineTooLong = errors.New("command line too long")

// Telnet's bytes (RFC 854).
const (
	telnetSE   = 240 // end of subnegotiation
	telnetSB   = 250 // subnegotiation
	telnetWILL = 251 // this and the next three name one option
	telnetWONT = 252
	telnetDO   = 253
	telnetDONT = 254
	telnetIAC  = 255
)

// maxRefusals bounds in bytes what one line makes the server answer to Telnet
// options. It is as much as the read buffer can ask for.
const maxRefusals = commandBuffer

// A Line is a command line, or the error that took its place.
type Line struct {
	Text    string
	Literal string // with what looks like Telnet commands in the argument, empty when nothing does
	None    bool   // nothing but Telnet commands has come
	Foreign string // ForeignTLS or ForeignPROXY
	Err     error

	Refusals []byte // the answers to requests for Telnet options
	Certain  int    // how many of their bytes are for requests that cannot be part of Literal
}

// A Reader takes command lines out of the bytes of a control connection.
type Reader struct {
	in      *bufio.Reader
	begun   bool // whether Next has looked at the first bytes
	line    []byte
	literal []byte // see Line

	lenient    bool // LF without CR ends every line, because it has ended one before the login
	identified bool // USER has come, so pathnames may follow
	argument   bool // the line has an argument
	bareCRs    int  // at the end of the line, where they may belong to its end
	tooLong    bool
	unfinished atomic.Uint32 // an Unfinished

	refusals []byte // see Line
	certain  int    // how many of their bytes answer what stood before the argument
}

// Unfinished describes the bytes of a command line whose end has not come.
type Unfinished uint32

// What an unfinished line contains.
const (
	UnfinishedText Unfinished = 1 << iota
	UnfinishedCR
	UnfinishedLF
)

// Unfinished describes the line that the client has begun, 0 for none. Any goroutine may call it.
func (r *Reader) Unfinished() Unfinished { return Unfinished(r.unfinished.Load()) }

// NewReader makes a Reader of the bytes that a client sends.
func NewReader(r io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, commandBuffer)}
}

// Next returns the next command line without its end. CR NUL has become CR
// (RFC 2640 3.1) and Telnet commands are gone (RFC 959 2.3). For a
// request for a Telnet option Next returns a Line without a command at once, because
// the client may wait for the answer.
//
// CRLF ends a line, also after further CRs. LF alone ends a line that cannot contain a pathname, such as every line
// before USER. If a line of the login ends with LF alone, LF ends all later lines too. Otherwise LF belongs to the
// pathname.
//
// If the end of the stream cuts a line short, Next returns the reader's error.
func (r *Reader) Next() *Line {
	if _, err := r.in.Peek(1); err != nil { // most clients are idle, so the wait for a line takes little of the stack
		return &Line{Err: err}
	}
	foreign := r.foreign()
	if foreign == ForeignTLS {
		return &Line{Foreign: foreign, None: true} // what follows is no line
	}
	line := r.next()
	line.Foreign = foreign
	return line
}

// What a client may begin with instead of a command.
const (
	ForeignTLS   = "TLS"   // implicit TLS (RFC 8446 5.1) on a port for explicit TLS
	ForeignPROXY = "PROXY" // a header of the PROXY protocol, version 1 or 2
)

// foreign tells from the first bytes of a client whether it speaks another protocol. They come in one piece.
func (r *Reader) foreign() string {
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
			if l := r.interrupted(command); l != nil {
				return l
			}
			continue
		case b == '\r':
			r.hold(UnfinishedCR)
			next, err := r.in.ReadByte()
			switch {
			case err != nil:
				return &Line{Err: err}
			case next == '\n':
				return r.finish()
			case next != 0:
				_ = r.in.UnreadByte() // never fails after ReadByte
				r.bareCRs++
				continue
			}
		case b == '\n' && r.endsAtLF():
			return r.finish()
		case b == '\n':
			r.hold(UnfinishedLF)
		case b == ' ':
			r.argument = true
		}
		r.hold(UnfinishedText)
		r.keepCRs()
		r.add(b)
	}
}

// keepCRs appends the bare CRs before a byte that does not end the line.
func (r *Reader) keepCRs() {
	for ; r.bareCRs > 0 && !r.tooLong; r.bareCRs-- {
		r.add('\r')
	}
	r.bareCRs = 0
}

// hold marks the line as unfinished.
func (r *Reader) hold(what Unfinished) {
	if now := r.Unfinished(); now&what == 0 {
		r.unfinished.Store(uint32(now | what))
	}
}

// endsAtLF reports whether LF without CR ends the line received so far. It makes the reader lenient if the client has
// not logged in with lines that end with CRLF.
func (r *Reader) endsAtLF() bool {
	verb, _, _ := ParseCommand(string(r.line))
	r.lenient = r.lenient || !r.identified || verb == "USER" || verb == "PASS"
	return r.lenient || !r.argument || !TakesPathname(verb)
}

// interrupted handles a Telnet command within a line. It returns a Line if the client may wait for the answer.
func (r *Reader) interrupted(command []byte) *Line {
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
		r.line = nil // a long line is no reason to keep its memory
	}
	return l
}

// refuse keeps the answer to a Telnet command. This server has no options. It
// answers DO with WON'T and WILL with DON'T, and no other command (RFC 1123
// 4.1.2.12, RFC 854).
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

// telnetFollows says whether the next byte is there and begins a Telnet command.
func (r *Reader) telnetFollows() bool {
	if r.in.Buffered() == 0 {
		return false
	}
	b, err := r.in.Peek(1)
	return err == nil && b[0] == telnetIAC
}

// telnet reads what follows an IAC, and returns the whole as it is if it is a
// Telnet command. It is none, but the data byte 255, when it is doubled, and when
// what follows is no command of RFC 854.
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
		if option == '\r' || option == '\n' { // the end of the line: no client negotiates options 13 and 10
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

// ParseCommand splits a line at its first SP; further ones belong to the
// argument (RFC 2640 3.1). Verbs are ASCII letters and digits in any case; what
// is none gives an empty verb.
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
