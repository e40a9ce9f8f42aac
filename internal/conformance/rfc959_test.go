package conformance_test

import (
	"strings"
	"testing"
)

// RFC 959 appendix II: the pathname of 257 comes first, in quotes, with its own doubled.
func TestQuotedPathnames(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	for _, name := range []string{`a"b`, `"`, `""`, `"a"`, `a" is b`, `\"`} {
		quoted := strings.ReplaceAll(name, `"`, `""`)
		c.want(`257 "/`+quoted+`" `, "MKD "+name)
		c.want("250 ", "CWD "+name)
		c.want(`257 "/`+quoted+`" `, "PWD")
		c.want("250 ", "CDUP")
	}
}
