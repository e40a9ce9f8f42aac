package list

import (
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// maxPattern limits the length of a pattern in bytes, because the time of [path.Match] grows with the product of
// the lengths of pattern and name, and a directory may have millions of names.
const maxPattern = 128

// A pattern is the last segment of a pathname such as "*.csv", which old devices send with LIST, NLST and STAT.
// RFC 959 leaves the syntax of pathnames to the server. If a file or directory has the name of the pattern, it is
// listed instead. MLSD, MLST and all other commands of RFC 3659 treat every pathname literally (RFC 3659, 2.2.2),
// and so do transfers. The zero value matches nothing.
type pattern struct {
	dir  string // directory of the pattern as sent by the client, empty or with a final "/"
	base string // syntax of path.Match in NFC, empty if the argument has no pattern
}

// parsePattern returns the pattern in the argument arg, whose pathname is name. A segment that is malformed,
// longer than maxPattern or followed by "/" is not a pattern.
func parsePattern(arg, name string) pattern {
	base := norm.NFC.String(path.Base(name))
	if strings.HasSuffix(arg, "/") || !strings.ContainsAny(base, "*?[") || len(base) > maxPattern {
		return pattern{}
	}
	if _, err := path.Match(base, ""); err != nil {
		return pattern{}
	}
	return pattern{dir: arg[:strings.LastIndexByte(arg, '/')+1], base: base}
}

// match reports whether the pattern matches the name of an entry.
func (p pattern) match(name string) bool {
	matched, err := path.Match(p.base, norm.NFC.String(name))
	return matched && err == nil && p.base != ""
}
