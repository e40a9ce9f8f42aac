package conformance_test

import (
	"testing"
)

// RFC 959 appendix II: the pathname of 257 comes first, in quotes, with its own doubled.
func TestQuotedPathnames(t *testing.T) {
	storeAndDeleteAll(t, newSite(t, settings{}), []pathname{
		{"inside", `a"b`}, {"alone", `"`}, {"two", `""`}, {"around", `"a"`}, {"like-a-reply", `a" is b`},
		{"behind-a-backslash", `\"`},
	})
}
