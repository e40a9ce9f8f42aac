package conformance_test

import (
	"testing"
)

// RFC 959 appendix II: 257 begins with the quoted pathname, in which quotes are doubled.
func TestQuotedPathnames(t *testing.T) {
	storeAndDeleteAll(t, newSite(t, settings{}), []pathname{
		{"inside", `a"b`}, {"alone", `"`}, {"two", `""`}, {"around", `"a"`}, {"like-a-reply", `a" is b`},
		{"behind-a-backslash", `\"`},
	})
}

// Section 4.1.1: PASS follows USER. Other commands are allowed between them, because clients send OPTS, PBSZ and
// PROT there.
func TestPASSFollowsUSER(t *testing.T) {
	c := newSite(t, settings{}).connect(t)
	c.want("503 ", "PASS "+password)
	c.want("331 ", "USER alice")
	for _, line := range []string{"NOOP", "OPTS UTF8 ON", "FEAT", "SYST"} {
		c.want("2", line)
	}
	c.want("530 ", "PASS wrong")
	c.want("503 ", "PASS "+password) // a wrong password requires a new USER
	c.want("331 ", "USER nobody")
	c.want("331 ", "USER alice") // the last one counts
	c.want("230", "PASS "+password)
}
