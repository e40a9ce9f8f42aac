package control

import (
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/syntax"
)

// rang is RANG (draft-bryan-ftp-range 3), for the RETR or HASH that follows. The
// last byte belongs to the range. "RANG 1 0", and anything wrong, chooses the
// whole file again, and not what REST has chosen either.
func (s *session) rang(arg string) {
	s.parameters.offset, s.parameters.byteRange = 0, nil
	r, ok := syntax.ParseRANG(arg)
	switch {
	case !ok:
		s.syntaxError()
	case r == syntax.WholeFile():
		s.reply(350, i18n.OK)
	default:
		s.parameters.byteRange = &r
		first, last, _ := strings.Cut(arg, " ")
		s.reply(350, i18n.RangeAccepted, first, last)
	}
}

// takeRange returns what RANG has chosen for HASH, nil for nothing, and forgets it.
func (s *session) takeRange() *syntax.ByteRange {
	r := s.parameters.byteRange
	s.parameters.byteRange = nil
	return r
}

// beginRange makes a transfer one of the bytes that RANG has chosen, or refuses
// it and returns false. The beginning is for the engine what an offset of REST is.
// No part of an object can be written anew.
func (s *session) beginRange(t *transfer) bool {
	r := s.parameters.byteRange
	switch {
	case r == nil:
		return true
	case t.upload:
		s.reply(504, i18n.ParameterNotImplemented, "RANG")
		return false
	case s.parameters.ascii:
		s.reply(551, i18n.RestartInASCII)
		return false
	}
	t.offset, t.count = r.From, r.To-r.From
	return true
}
