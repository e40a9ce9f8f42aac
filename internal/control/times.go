package control

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/wire"
)

// timeVal is the time-val of RFC 3659 2.3 without a fraction, in UTC.
const timeVal = "20060102150405"

// maxFraction is how many digits of a fraction a time holds.
const maxFraction = 9

// The years that a time-val can express.
const (
	minYear = 1000
	maxYear = 9999
)

// appendTimeVal writes a time, with a fraction only if it has one, or returns
// false for one that a time-val cannot express, such as the zero time.
func appendTimeVal(b []byte, t time.Time) ([]byte, bool) {
	t = t.UTC()
	if t.Year() < minYear || t.Year() > maxYear {
		return b, false
	}
	return t.AppendFormat(b, timeVal+".999999999"), true
}

// parseTimeVal reads a time-val. A second 60 is taken where a leap second can be,
// at the end of a month, and is then the second that follows, because the times
// of computers have no room for it.
func parseTimeVal(value string) (time.Time, bool) {
	digits, fraction, hasFraction := strings.Cut(value, ".")
	if len(digits) != len(timeVal) || !isNumber(digits) || hasFraction && !isNumber(fraction) {
		return time.Time{}, false
	}
	minute, leap := strings.CutSuffix(digits, "60")
	if leap {
		digits = minute + "59"
	}
	t, err := time.Parse(timeVal, digits) // refuses what no calendar has
	if err != nil || t.Year() < minYear {
		return time.Time{}, false
	}
	if leap {
		t = t.Add(time.Second)
		if t.Day() != 1 || t.Hour() != 0 || t.Minute() != 0 || t.Year() > maxYear {
			return time.Time{}, false
		}
	}
	return t.Add(fractionOfSecond(fraction)), true
}

// fractionOfSecond is the time that the digits after the point stand for.
func fractionOfSecond(digits string) time.Duration {
	d := time.Duration(0)
	for i, unit := 0, time.Second/10; i < min(len(digits), maxFraction); i, unit = i+1, unit/10 {
		d += time.Duration(digits[i]-'0') * unit
	}
	return d
}

// mdtm is MDTM (RFC 3659 3): of files only.
func (s *session) mdtm(arg string) {
	name, err := s.resolve(arg)
	if err != nil {
		s.fail(err)
		return
	}
	var info fs.FileInfo
	err = s.lookup(name, func(name string) (err error) {
		info, err = s.login.Storage.StatFile(name)
		return err
	})
	if err != nil {
		s.fail(err)
		return
	}
	value, ok := appendTimeVal(nil, info.ModTime())
	if !ok {
		s.fail(&fs.PathError{Op: "mdtm", Path: name, Err: errors.ErrUnsupported})
		return
	}
	s.send(wire.NewReply(213, string(value)))
}

// mfmt is MFMT (draft-somers-ftp-mfxx 3): a time, one SP and a pathname.
func (s *session) mfmt(arg string) {
	value, pathname, _ := strings.Cut(arg, " ")
	t, ok := parseTimeVal(value)
	if !ok || pathname == "" {
		s.syntaxError()
		return
	}
	s.setModified(pathname, t)
}

// mff is MFF (draft-somers-ftp-mfxx 5): facts, one SP and a pathname. Only the
// time of modification can be changed; the time when an object was created is
// S3's own. A command with a fact that is refused changes nothing.
func (s *session) mff(arg string) {
	facts, pathname, _ := strings.Cut(arg, " ")
	facts, ended := strings.CutSuffix(facts, ";")
	if !ended || pathname == "" {
		s.syntaxError()
		return
	}
	modify := ""
	var refused []string
	for fact := range strings.SplitSeq(facts, ";") {
		name, value, ok := strings.Cut(fact, "=")
		switch {
		case !ok || !isToken(name):
			s.syntaxError()
			return
		case !strings.EqualFold(name, "modify"):
			refused = append(refused, name)
		case modify != "":
			s.syntaxError()
			return
		default:
			modify = value
		}
	}
	if refused != nil {
		s.send(wire.NewReply(504, s.text(i18n.ParameterNotImplemented, "MFF")+" ("+strings.ToUpper(strings.Join(refused, ", "))+")"))
		return
	}
	t, ok := parseTimeVal(modify)
	if !ok {
		s.syntaxError()
		return
	}
	s.setModified(pathname, t)
}

// setModified sets the time of modification of a file and says which it is now.
func (s *session) setModified(pathname string, t time.Time) {
	name, err := s.resolve(pathname)
	if err == nil {
		err = s.lookup(name, func(name string) error { return s.login.Storage.Chtimes(name, t, t) })
	}
	if err != nil {
		s.fail(err)
		return
	}
	value, _ := appendTimeVal(nil, t) // it was read from one
	s.send(wire.NewReply(213, "Modify="+string(value)+"; "+pathname))
}
