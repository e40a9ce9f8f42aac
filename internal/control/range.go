package control

import (
	"math"
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/i18n"
)

// A byteRange is the bytes [from, to) of a file.
type byteRange struct{ from, to int64 }

// endOfFile stands for the end of a file wherever that is.
const endOfFile = -1

// rang is RANG (draft-bryan-ftp-range 3), for the RETR or HASH that follows. The
// last byte belongs to the range. "RANG 1 0", and anything wrong, chooses the
// whole file again, and not what REST has chosen either.
func (s *session) rang(arg string) {
	s.parameters.offset, s.parameters.byteRange = 0, nil
	first, last, _ := strings.Cut(arg, " ")
	if !isNumber(first) || !isNumber(last) {
		s.syntaxError()
		return
	}
	from, err := strconv.ParseInt(first, 10, 64)
	to, toErr := strconv.ParseInt(last, 10, 64)
	switch {
	case from == 1 && to == 0:
		s.reply(350, i18n.OK)
	case err != nil || toErr != nil || from > to || to == math.MaxInt64:
		s.syntaxError()
	default:
		s.parameters.byteRange = &byteRange{from, to + 1}
		s.reply(350, i18n.RangeAccepted, first, last)
	}
}

// takeRange returns what RANG has chosen for HASH, nil for nothing, and forgets it.
func (s *session) takeRange() *byteRange {
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
	t.offset, t.count = r.from, r.to-r.from
	return true
}
