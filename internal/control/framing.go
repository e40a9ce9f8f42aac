package control

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxCommandLine is the length in bytes, without its CRLF, that a command line
// may have: a pathname of 1,024 bytes with every CR padded takes half of it.
const maxCommandLine = 4096

// commandBuffer is the read buffer of a session; it stays small because most
// sessions are idle.
const commandBuffer = 512

// errLineTooLong reports a command line over maxCommandLine bytes; it has been
// read up to its end, so that the next command can follow.
var errLineTooLong = errors.New("command line too long")

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

// A commandReader takes command lines out of the bytes of a control connection.
type commandReader struct {
	in      *bufio.Reader
	line    []byte
	literal []byte // see line

	refusals []byte // see line
	certain  int    // how many of their bytes answer what stood before the argument
}

func newCommandReader(r io.Reader) *commandReader {
	return &commandReader{in: bufio.NewReaderSize(r, commandBuffer)}
}

// next returns the next command line without its end. CR NUL has become CR
// (RFC 2640 3.1) and Telnet commands are gone (RFC 959 2.3). A request for a
// Telnet option is answered without waiting for a command, because its client may
// wait too: then next returns a line that is none. Only CRLF ends a command
// line, because LF may be part of a pathname; where no SP has been seen there
// is no pathname, and LF alone is let pass as the end. A line that the end of
// the stream cuts short is no command: next returns the reader's error.
func (r *commandReader) next() line {
	r.line, r.literal, r.refusals, r.certain = r.line[:0], nil, nil, 0
	argument, tooLong := false, false
	for {
		b, err := r.in.ReadByte()
		if err != nil {
			return line{err: err}
		}
		switch {
		case b == telnetIAC:
			command, err := r.telnet()
			if err != nil {
				return line{err: err}
			}
			if command == nil {
				break
			}
			r.refuse(command)
			if !argument {
				r.certain = len(r.refusals)
				if len(r.line) == 0 && r.certain > 0 && !r.telnetFollows() {
					return line{refusals: r.refusals, certain: r.certain, none: true}
				}
				continue
			}
			if r.literal == nil {
				r.literal = bytes.Clone(r.line)
			}
			if len(r.literal) < maxCommandLine {
				r.literal = append(r.literal, command...)
			}
			continue
		case b == '\r':
			next, err := r.in.ReadByte()
			if err != nil {
				return line{err: err}
			}
			if next == '\n' {
				return r.finish(tooLong)
			}
			if next != 0 {
				_ = r.in.UnreadByte() // never fails after ReadByte
			}
		case b == '\n' && !argument:
			return r.finish(tooLong)
		case b == ' ':
			argument = true
		}
		if len(r.line) == maxCommandLine {
			tooLong = true
			continue
		}
		r.line = append(r.line, b)
		if r.literal != nil {
			r.literal = append(r.literal, b)
		}
	}
}

func (r *commandReader) finish(tooLong bool) line {
	l := line{refusals: r.refusals, certain: r.certain}
	if tooLong {
		l.err = errLineTooLong
	} else {
		l.text, l.literal = string(r.line), string(r.literal)
	}
	return l
}

// refuse notes the answer to a Telnet command. This server has no options, so it
// answers DO with WON'T and WILL with DON'T, and the others not at all (RFC 1123
// 4.1.2.12, RFC 854).
func (r *commandReader) refuse(command []byte) {
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
func (r *commandReader) telnetFollows() bool {
	if r.in.Buffered() == 0 {
		return false
	}
	b, err := r.in.Peek(1)
	return err == nil && b[0] == telnetIAC
}

// telnet reads what follows an IAC, and returns the whole as it is if it is a
// Telnet command. It is none, but the data byte 255, when it is doubled, and when
// what follows is no command of RFC 854.
func (r *commandReader) telnet() (command []byte, err error) {
	b, err := r.in.ReadByte()
	switch {
	case err != nil || b == telnetIAC:
		return nil, err
	case b < telnetSE:
		_ = r.in.UnreadByte()
		return nil, nil
	case b >= telnetWILL:
		option, err := r.in.ReadByte()
		if option == '\r' { // the end of the line: nobody negotiates option 13
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
