package control

import (
	"bufio"
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
	telnetWILL = 251 // WILL, WON'T, DO and DON'T name one option
	telnetDONT = 254
	telnetIAC  = 255
)

// A commandReader takes command lines out of the bytes of a control connection.
type commandReader struct {
	in   *bufio.Reader
	line []byte
}

func newCommandReader(r io.Reader) *commandReader {
	return &commandReader{in: bufio.NewReaderSize(r, commandBuffer)}
}

// next returns the next command line without its end. CR NUL has become CR
// (RFC 2640 3.1) and Telnet commands are gone (RFC 959 2.3). Only CRLF ends a
// line, because LF may be part of a pathname; where no SP has been seen there
// is no pathname, and LF alone is let pass as the end. A line that the end of
// the stream cuts short is no command: next returns the reader's error.
func (r *commandReader) next() (string, error) {
	r.line = r.line[:0]
	argument, tooLong := false, false
	for {
		b, err := r.in.ReadByte()
		if err != nil {
			return "", err
		}
		switch {
		case b == telnetIAC:
			data, err := r.telnet()
			if err != nil {
				return "", err
			}
			if !data {
				continue
			}
		case b == '\r':
			next, err := r.in.ReadByte()
			if err != nil {
				return "", err
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
	}
}

func (r *commandReader) finish(tooLong bool) (string, error) {
	if tooLong {
		return "", errLineTooLong
	}
	return string(r.line), nil
}

// telnet consumes what follows an IAC and says whether it was the escape of
// the data byte 255.
func (r *commandReader) telnet() (data bool, err error) {
	b, err := r.in.ReadByte()
	if err != nil {
		return false, err
	}
	switch {
	case b == telnetIAC:
		return true, nil
	case b >= telnetWILL && b <= telnetDONT:
		_, err = r.in.ReadByte()
	case b == telnetSB:
		for iac := false; ; {
			if b, err = r.in.ReadByte(); err != nil {
				break
			}
			if iac && b == telnetSE {
				break
			}
			iac = b == telnetIAC && !iac
		}
	}
	return false, err
}
