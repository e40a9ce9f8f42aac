package control

import (
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/syntax"
)

// transferParameters is what a client has said about its next transfer. The
// session answers TYPE, REST, RANG and ALLO itself and keeps them here alone; the
// engine learns of them right before each transfer, from prepareEngine.
//
// The next transfer command ends all but the type, whatever becomes of it: a
// client that tries again sends REST again (RFC 3659 5.3). Other commands may come
// between, because most clients send REST before PASV.
type transferParameters struct {
	ascii     bool              // TYPE A
	offset    int64             // of REST
	textual   bool              // whether TYPE was A when REST gave the offset
	byteRange *syntax.ByteRange // of RANG, nil for the whole file
	allocSize int64             // size of an upload in bytes, from ALLO; 0 where it is not known
}

// afterTransfer is what is left of them when a transfer command has been answered.
func (p transferParameters) afterTransfer() transferParameters {
	return transferParameters{ascii: p.ascii}
}

// restartsInText says whether an offset counts bytes of text: those of a file whose
// lines are converted are not known without reading it (RFC 3659 5.3).
func (p transferParameters) restartsInText() bool {
	return p.offset > 0 && (p.ascii || p.textual)
}

// representation is TYPE (RFC 959 3.1.1): text and bytes. Bytes of 7 bits are
// refused.
func (s *session) representation(arg string) {
	switch strings.ToUpper(arg) {
	case "A", "A N", "AN":
		s.parameters.ascii = true
		s.reply(200, i18n.TypeASCII)
	case "I", "L 8", "L8":
		s.parameters.ascii = false
		s.reply(200, i18n.TypeBinary)
	default:
		s.reply(504, i18n.ParameterNotImplemented, "TYPE")
	}
}

// stru is STRU: files only (RFC 959 3.1.2).
func (s *session) stru(structure string) {
	if structure != "F" && structure != "f" {
		s.reply(504, i18n.ParameterNotImplemented, "STRU")
		return
	}
	s.reply(200, i18n.StructureFile)
}

// rest is REST (RFC 3659 5.3): only what is no number gets an error, and the
// transfer tells about an offset where it cannot begin. REST and RANG replace each
// other.
func (s *session) rest(arg string) {
	offset, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || !syntax.IsNumber(arg) {
		s.syntaxError()
		return
	}
	s.parameters.offset, s.parameters.textual = offset, s.parameters.ascii
	s.parameters.byteRange = nil
	s.reply(350, i18n.RestartAccepted, arg)
}

// allo is ALLO (RFC 959 4.1.3). Objects need no room made for them, so the size is a
// hint for the log and refuses nothing: clients announce that of the local file, which
// has other line ends, or that of a buffer. 200, because some cameras ask again and
// again after 202.
func (s *session) allo(arg string) {
	size, ok := syntax.ParseALLO(arg)
	if !ok {
		s.syntaxError()
		return
	}
	s.parameters.allocSize = size
	s.reply(200, i18n.AllocationNotNeeded)
}
