package conformance_test

import (
	"regexp"
	"strings"
	"testing"
)

// RFC 2428 2: the arguments of EPRT. 522 names the supported protocol, in every language.
func TestSyntaxOfEPRT(t *testing.T) {
	s := newSite(t, settings{})
	for _, tt := range []struct {
		name string
		line string
		want string
	}{
		{"ipv4", "EPRT |1|127.0.0.1|2000|", "200 "},
		{"another-delimiter", "EPRT !1!127.0.0.1!2000!", "200 "},
		{"delimiter-7e", "eprt ~1~127.0.0.1~2000~", "200 "},
		{"unknown-protocol", "EPRT |3|x|2000|", "522 "},
		{"unknown-protocol-with-other-addresses", "EPRT |4|a|b|", "522 "},
		{"unknown-protocol-and-port", "EPRT |3|x|1|", "522 "},
		{"long-protocol", "EPRT |99999999999999999999|x|2000|", "522 "},
		{"protocol-no-number", "EPRT |x|127.0.0.1|2000|", "501 "},
		{"ipv6-address-as-ipv4", "EPRT |1|::1|2000|", "501 "},
		{"ipv4-address-as-ipv6", "EPRT |2|127.0.0.1|2000|", "522 "},
		{"port-too-large", "EPRT |1|127.0.0.1|65536|", "501 "},
		{"no-number", "EPRT |1|127.0.0.1|ftp|", "501 "},
		{"without-the-last-delimiter", "EPRT |1|127.0.0.1|2000", "501 "},
		{"without-the-first-delimiter", "EPRT 1|127.0.0.1|2000|", "501 "},
		{"missing", "EPRT", "501 "},
		{"unspecified-address", "EPRT |1|0.0.0.0|2000|", "200 "},
		{"unspecified-address-of-ipv6", "EPRT |2|::|2000|", "522 "},
		{"ipv4-mapped-into-ipv6", "EPRT |2|::ffff:127.0.0.1|2000|", "200 "},
		{"other-host-mapped-into-ipv6", "EPRT |2|::ffff:192.0.2.1|2000|", "501 "},
		{"no-address-of-ipv6", "EPRT |2|x|1|", "522 "},
		{"other-host", "EPRT |1|192.0.2.1|2000|", "501 "},
		{"ipv6-in-a-session-over-ipv4", "EPRT |2|::1|2000|", "522 "},
		{"port-of-a-service", "EPRT |1|127.0.0.1|25|", "504 "},
	} {
		t.Run(tt.name, func(t *testing.T) { s.login(t).want(tt.want, tt.line) })
	}
	form := regexp.MustCompile(`^522 [^()]+ \(1\)$`) // the session is over IPv4
	s.inEachLanguage(t, func(t *testing.T, c *client) {
		c.login()
		for _, line := range []string{"EPRT |3|x|2000|", "EPRT |2|::1|2000|", "EPSV 2", "EPSV 3"} {
			if r := c.send(line); !form.MatchString(r) {
				t.Errorf("%s: %q", line, r)
			}
		}
	})
}

// RFC 2428 3: the format of 229 and the arguments of EPSV.
func TestSyntaxOfEPSV(t *testing.T) {
	s := newSite(t, settings{})
	form := regexp.MustCompile(`^229 [^()]+ \(\|\|\|\d+\|\)$`)
	s.inEachLanguage(t, func(t *testing.T, c *client) {
		c.login()
		for _, line := range []string{"EPSV", "EPSV 1", "epsv"} {
			if r := c.send(line); !form.MatchString(r) {
				t.Errorf("%s: %q", line, r)
			}
		}
		// the session is over IPv4
		if r := c.send("EPSV 2"); !strings.HasPrefix(r, "522 ") || !strings.HasSuffix(r, " (1)") {
			t.Errorf("EPSV 2: %q", r)
		}
		c.want("501 ", "EPSV x")
	})
}

// RFC 2428 3: after EPSV ALL the session rejects all other commands for data connections.
func TestEPSVALL(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	c.must("200", "EPSV ALL")
	for _, line := range []string{"PASV", "PORT 127,0,0,1,8,0", "EPRT |1|127.0.0.1|2048|"} {
		c.want("503 ", line)
	}
	c.want("502 ", "LPRT 4,4,127,0,0,1,2,8,0")
	c.Transfer("NLST")
	c.want("200 ", "EPSV ALL")
	c.must("220", "REIN")
	c.login()
	c.want("227 ", "PASV")
}
