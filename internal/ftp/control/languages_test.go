package control_test

import (
	"regexp"
	"testing"

	"github.com/babelftp/babelftp/i18n"
)

// TestFieldsInEveryLanguage: what programs look for in replies is the same
// bytes in every language.
func TestFieldsInEveryLanguage(t *testing.T) {
	bundle, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, nil)
	s.login().do("MKD /d\"é", "257 ")
	exchanges := []struct{ command, reply string }{
		{"PWD", `257 "/" `},
		{"CWD /d\"é", `250 `},
		{"PWD", `257 "/d""é" `},
		{"MKD a b", `257 "/d""é/a b" `},
		{"PASV", `227 [^\d().]*\(127,0,0,1,\d{1,3},\d{1,3}\)$`},
		{"EPSV", `229 [^\d().]*\(\|\|\|\d{1,5}\|\)$`},
		{"EPSV 7", `522 [^\d().]*\(1\)$`},
		{"EPRT |7|::1|5|", `522 [^\d().]*\(1,2\)$`},
		{"REST 65535", `350 .*\b65535\b`},
		{"SYST", `215 UNIX Type: L8$`},
		{"RMD /d\"é/a b", `250 `},
	}
	for _, tag := range bundle.Tags() {
		t.Run(tag.String(), func(t *testing.T) {
			c := s.login()
			c.do("LANG "+i18n.FeatTag(tag), "200 ")
			for _, e := range exchanges {
				c.write(e.command + "\r\n")
				if reply := c.reply(); !regexp.MustCompile("^(?:" + e.reply + ")").MatchString(reply) {
					t.Errorf("%s: %q, want %s", e.command, reply, e.reply)
				}
			}
			c.do("QUIT", "221 ")
		})
	}
}
