package list

import (
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// A pattern is the last segment of a pathname such as "*.csv", which old devices send
// with LIST, NLST and STAT. RFC 959 leaves the syntax of pathnames to the server. An
// existing name goes before the pattern that it looks like. MLSD, MLST and all other
// commands of RFC 3659 take every pathname literally (RFC 3659 2.2.2), and so do
// transfers. The zero value matches nothing.
type pattern struct {
	dir  string // the directory of the pattern as the client wrote it, empty or with a final "/"
	glob *glob  // nil for none
}

// parsePattern returns the pattern in the argument arg, whose pathname is name. A
// malformed pattern is none, and neither is one that ends with "/".
func parsePattern(arg, name string) pattern {
	base := path.Base(name)
	if strings.HasSuffix(arg, "/") || !strings.ContainsAny(base, "*?[") {
		return pattern{}
	}
	if _, err := path.Match(base, ""); err != nil {
		return pattern{}
	}
	return pattern{dir: arg[:strings.LastIndexByte(arg, '/')+1], glob: newGlob(norm.NFC.String(base))}
}

// match reports whether the pattern matches the name of an entry.
func (p pattern) match(name string) bool { return p.glob.match(norm.NFC.String(name)) }
