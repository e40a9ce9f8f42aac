package control

import (
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/charset"
	"github.com/babelftp/babelftp/internal/wire"
)

// maxPathname is the length in bytes of the longest key of S3.
const maxPathname = 1024

// resolve makes a command's argument an absolute, clean pathname in UTF-8. Its
// encoding is checked before any ".." in it is looked at; every SP in it,
// leading and trailing ones too, belongs to it (RFC 2640 3.1). No argument means
// the working directory.
func (s *session) resolve(arg string) (string, error) {
	if arg == "" {
		return s.workingDirectory(), nil
	}
	if strings.IndexByte(arg, 0) >= 0 {
		return "", syscall.EILSEQ
	}
	name, err := s.decode(arg)
	if err != nil {
		return "", err
	}
	if len(name)-len("/") > maxPathname {
		return "", syscall.ENAMETOOLONG
	}
	return name, nil
}

// decode takes a pathname to UTF-8 segment by segment, because directories may
// have encodings of their own. In none of these does the byte of "/" occur
// within a character.
func (s *session) decode(arg string) (string, error) {
	name := s.workingDirectory()
	if path.IsAbs(arg) {
		name = "/"
	}
	for segment := range strings.SplitSeq(arg, "/") {
		encoding := s.encoding(name)
		decoded, err := encoding.Decode(segment)
		if err != nil {
			return "", &encodingError{encoding, err}
		}
		name = path.Join(name, decoded)
	}
	return name, nil
}

// An encodingError reports a pathname that is not in its encoding.
type encodingError struct {
	encoding *charset.Encoding
	err      error
}

func (e *encodingError) Error() string { return e.err.Error() }
func (e *encodingError) Unwrap() error { return e.err }

// encoding is that of the names in a directory.
func (s *session) encoding(dir string) *charset.Encoding {
	if len(s.login.DirectoryEncodings) > 0 {
		for dir = norm.NFC.String(dir); ; dir = path.Dir(dir) {
			if encoding, ok := s.login.DirectoryEncodings[dir]; ok {
				return encoding
			}
			if dir == "/" {
				break
			}
		}
	}
	return s.login.Tenant.Encoding
}

// shownEncoding is how the names in a directory are shown: in UTF-8 to a client
// that has asked for it, but those of a mirror, which are bytes, as they are.
func (s *session) shownEncoding(dir string) *charset.Encoding {
	encoding := s.encoding(dir)
	if s.utf8 && !encoding.Raw() {
		return nil
	}
	return encoding
}

// shown is an absolute pathname as the client writes it.
func (s *session) shown(name string) string {
	shown, dir := "", "/"
	for segment := range strings.SplitSeq(name[len("/"):], "/") {
		shown += "/" + s.shownName(dir, segment)
		dir = path.Join(dir, segment)
	}
	return shown
}

// shownName is the name of an entry of a directory as the client writes it.
func (s *session) shownName(dir, name string) string {
	if shown, ok := s.shownEncoding(dir).Encode(name); ok {
		return shown
	}
	return name
}

// listedName is a name as a line of a listing has it, without CR and LF. It
// returns false for a name that the client has no bytes for.
func (s *session) listedName(dir, name string) (string, bool) {
	return s.shownEncoding(dir).Encode(toLine(name))
}

// meant is a command line as the client has meant it, and the answers to the
// Telnet options that it asks for. Where the byte 255 is a letter, such as the
// last of the alphabet in windows-1251, few clients know that it is Telnet's IAC as
// well and has to be doubled (RFC 854). From them it would go, and with it what
// follows if that is a command of Telnet.
func (s *session) meant(l wire.Line) (text string, refusals []byte) {
	if l.Literal == "" || s.login == nil {
		return l.Text, l.Refusals
	}
	for _, encoding := range append(slices.Collect(maps.Values(s.login.DirectoryEncodings)), s.login.Tenant.Encoding) {
		if s.utf8 && !encoding.Raw() {
			continue
		}
		if _, err := encoding.Decode("\xff"); err == nil {
			return l.Literal, l.Refusals[:l.Certain]
		}
	}
	return l.Text, l.Refusals
}

// workingDirectory is the engine's, which keeps it.
func (s *session) workingDirectory() string {
	return unescapePathname(s.engine.client.Path())
}

// A pathname goes to the engine on one line. CR and LF in it are escaped by
// DLE, the control character made for that; clients and keys never see it so.
var (
	pathnameEscaper   = strings.NewReplacer("\x10", "\x10\x10", "\r", "\x10r", "\n", "\x10n")
	pathnameUnescaper = strings.NewReplacer("\x10\x10", "\x10", "\x10r", "\r", "\x10n", "\n")
)

func escapePathname(name string) string   { return pathnameEscaper.Replace(name) }
func unescapePathname(name string) string { return pathnameUnescaper.Replace(name) }

// quote writes a pathname as 257 shows it (RFC 959 appendix II).
func quote(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
