package ftplist

import (
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// A Pattern is the last segment of a pathname such as "*.csv", which old devices send
// with LIST, NLST and STAT. RFC 959 leaves the syntax of pathnames to the server. An
// existing name goes before the pattern that it looks like. MLSD, MLST and all other
// commands of RFC 3659 take every pathname literally (RFC 3659 2.2.2), and so do
// transfers. The zero value matches nothing.
type Pattern struct {
	Dir  string // the directory of the pattern as the client wrote it, empty or with a final "/"
	glob string // for path.Match
}

// ParsePattern returns the pattern in the argument arg, whose pathname is name. A
// malformed pattern is none, and neither is one that ends with "/".
func ParsePattern(arg, name string) Pattern {
	pattern := path.Base(name)
	if strings.HasSuffix(arg, "/") || !strings.ContainsAny(pattern, "*?[") {
		return Pattern{}
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return Pattern{}
	}
	return Pattern{Dir: arg[:strings.LastIndexByte(arg, '/')+1], glob: norm.NFC.String(pattern)}
}

// Match reports whether the pattern matches the name of an entry.
func (p Pattern) Match(name string) bool {
	matched, _ := path.Match(p.glob, norm.NFC.String(name)) // never malformed
	return matched
}

// IsZero reports whether there is no pattern.
func (p Pattern) IsZero() bool { return p.glob == "" }
