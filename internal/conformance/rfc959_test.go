package conformance_test

import (
	"strings"
	"testing"
)

// RFC 959 4.2 and 5.4: what is wrong with a command chooses the code of its reply, and the session continues.
func TestErrorCodes(t *testing.T) {
	s := newSite(t, settings{})
	s.login(t).store("keep", "x")
	for _, tt := range []struct {
		name  string
		login bool
		line  string
		want  string
	}{
		{"empty", false, "", "500 "},
		{"unknown", false, "FOO", "500 "},
		{"unknown-with-argument", true, "FOO keep", "500 "},
		{"space-first", false, " NOOP", "500 "},
		{"suffix-of-one", true, "XXSTAT", "500 "},
		{"prefix-of-one", true, "NOO", "500 "},
		{"too-long-verb", true, strings.Repeat("A", 5000), "500 "},
		{"too-long-argument", true, "SIZE " + strings.Repeat("a", 10000), "500 "},
		{"argument-missing", true, "DELE", "501 "},
		{"argument-empty", true, "DELE ", "501 "},
		{"argument-too-many", true, "NOOP x", "501 "},
		{"not-a-number", true, "REST x", "501 "},
		{"not-an-address", true, "PORT x", "501 "},
		{"not-here", true, "SMNT x", "502 "},
		{"no-user-before", false, "PASS x", "503 "},
		{"no-rnfr-before", true, "RNTO x", "503 "},
		{"no-pbsz-before", true, "PROT P", "503 "},
		{"host-too-late", true, "HOST ftp.acme.example", "503 "},
		{"type-unknown", true, "TYPE E", "504 "},
		{"type-of-other-bytes", true, "TYPE L 7", "504 "},
		{"mode-unknown", true, "MODE B", "504 "},
		{"structure-unknown", true, "STRU R", "504 "},
		{"language-unknown", true, "LANG tlh", "504 "},
		{"not-logged-in", false, "SIZE keep", "530 "},
		{"not-logged-in-transfer", false, "RETR keep", "530 "},
		{"not-logged-in-mlst", false, "MLST", "530 "},
		{"no-data-connection", true, "RETR keep", "425 "},
		{"not-found", true, "SIZE nothing", "550 "},
		{"not-found-directory", true, "CWD nothing", "550 "},
		{"not-a-directory", true, "CWD keep", "550 "},
		{"exists-already", true, "MKD /", "550 "},
		{"name-too-long", true, "MKD " + strings.Repeat("a", 2000), "553 "},
		{"name-not-allowed", true, "MKD a\x00b", "553 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := s.connect(t)
			if tt.login {
				c.login()
			}
			c.want(tt.want, tt.line)
			c.want("200 ", "NOOP")
		})
	}
}

// RFC 959 4.1.3: RNTO follows RNFR at once.
func TestRNTOFollowsRNFR(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	c.store("a", "x")
	c.want("350 ", "RNFR a")
	c.want("200 ", "NOOP")
	c.want("503 ", "RNTO b")
	c.want("350 ", "RNFR a")
	c.want("250 ", "RNTO b")
	c.want("503 ", "RNTO c")
	c.want("550 ", "RNFR nothing")
	c.want("503 ", "RNTO c")
	c.want("213 1", "SIZE b")
}

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

// RFC 1123 4.1.3.2 and RFC 959 4.2: replies keep the order of commands, however these arrive.
func TestRepliesKeepTheOrder(t *testing.T) {
	s := newSite(t, settings{})
	c := s.connect(t)
	c.write("NOOP\r\nUSER alice\r\nPASS " + password + "\r\nFOO\r\nMKD d\r\nCWD d\r\nPWD\r\nDELE x\r\nNOOP\r\nQUIT\r\n")
	for _, want := range []string{"200 ", "331 ", "230 ", "500 ", "257 ", "250 ", `257 "/d" `, "550 ", "200 ", "221 "} {
		c.wantReply(want)
	}
	c.wantClosed()
}
