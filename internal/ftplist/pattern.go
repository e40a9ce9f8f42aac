package ftplist

import (
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// A Pattern is what LIST, NLST and STAT do with a pathname that names nothing
// and whose last segment is a pattern, because old devices ask for "*.csv" (RFC
// 959 leaves pathnames to the server). A name that is there always goes before
// the pattern that it looks like. MLSD, MLST and whatever else RFC 3659 defines
// take every pathname literally (RFC 3659 2.2.2), and so do transfers.
type Pattern struct {
	glob string // as path.Match takes it, empty where there is none
	Dir  string // the pathname of the pattern's directory as the client gave it, empty or ending with "/"
}

// ParsePattern looks for a pattern in an argument and the pathname it was resolved
// to. Directories of the pathname are no patterns, and neither is a malformed one.
func ParsePattern(arg, name string) Pattern {
	pattern := path.Base(name)
	if strings.HasSuffix(arg, "/") || !strings.ContainsAny(pattern, "*?[") {
		return Pattern{}
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return Pattern{}
	}
	return Pattern{norm.NFC.String(pattern), arg[:strings.LastIndexByte(arg, '/')+1]}
}

// Match reports whether the pattern matches the name of an entry.
func (p Pattern) Match(name string) bool {
	matched, _ := path.Match(p.glob, norm.NFC.String(name)) // never malformed
	return matched
}

// IsZero reports whether there is no pattern.
func (p Pattern) IsZero() bool { return p.glob == "" }
