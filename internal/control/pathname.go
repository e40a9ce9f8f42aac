package control

import (
	"path"
	"strings"
	"syscall"
	"unicode/utf8"
)

// maxPathname is the length in bytes of the longest key of S3.
const maxPathname = 1024

// resolve makes a command's argument an absolute, clean pathname. It is valid
// UTF-8 by RFC 3629 before any "/" or ".." in it is looked at; every SP in it,
// leading and trailing ones too, belongs to it (RFC 2640 3.1). No argument means
// the working directory.
func (s *session) resolve(arg string) (string, error) {
	if arg == "" {
		return s.workingDirectory(), nil
	}
	if !utf8.ValidString(arg) {
		return "", errNameNotUTF8
	}
	if strings.IndexByte(arg, 0) >= 0 {
		return "", syscall.EILSEQ
	}
	if !path.IsAbs(arg) {
		arg = s.workingDirectory() + "/" + arg
	}
	name := path.Clean(arg)
	if len(name)-len("/") > maxPathname {
		return "", syscall.ENAMETOOLONG
	}
	return name, nil
}

// workingDirectory is the engine's, which keeps it.
func (s *session) workingDirectory() string {
	return unescapePathname(s.engine.client.Path())
}

// A pathname crosses the pipe to the engine on one line. CR and LF in it are
// escaped by DLE, the control character made for that; clients and keys never
// see it so.
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
