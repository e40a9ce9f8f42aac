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

// Section 4.1.1: PASS follows USER. Other commands may come between them, because clients send OPTS, PBSZ and PROT
// there.
func TestPASSFollowsUSER(t *testing.T) {
	c := newSite(t, settings{}).connect(t)
	c.want("503 ", "PASS "+password)
	c.want("331 ", "USER alice")
	for _, line := range []string{"NOOP", "OPTS UTF8 ON", "FEAT", "SYST"} {
		c.want("2", line)
	}
	c.want("530 ", "PASS wrong")
	c.want("503 ", "PASS "+password) // after a wrong password USER comes first again
	c.want("331 ", "USER nobody")
	c.want("331 ", "USER alice") // the last one counts
	c.want("230", "PASS "+password)
}
