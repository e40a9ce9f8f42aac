package conformance_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// Section 3: HOST selects the tenant and therefore the users who can log in. The last HOST counts. The server's own
// address selects no tenant.
func TestHOSTChoosesTheUsers(t *testing.T) {
	s := newSite(t, settings{})
	for _, tt := range []struct {
		name         string
		before       []string
		user, answer string
	}{
		{"none", nil, "alice", "230"},
		{"none-either", nil, "ursula", "230"},
		{"its-own", []string{"220 HOST ftp.acme.example"}, "alice", "230"},
		{"of-another", []string{"220 HOST ftp.acme.example"}, "ursula", "530"},
		{"the-last-counts", []string{"220 HOST ftp.acme.example", "220 HOST ftp.umbrella.example"}, "ursula", "230"},
		{"the-one-before-does-not", []string{"220 HOST ftp.acme.example", "220 HOST ftp.umbrella.example"}, "alice",
			"530"},
		{"twice-the-same", []string{"220 HOST ftp.acme.example", "220 HOST ftp.acme.example"}, "alice", "230"},
		{"wrong-first", []string{"504 HOST ftp.unknown.example", "220 HOST ftp.acme.example"}, "alice", "230"},
		{"refused-is-as-if-not-sent", []string{"504 HOST ftp.unknown.example"}, "ursula", "230"},
		{"malformed-is-as-if-not-sent", []string{"501 HOST x:21"}, "ursula", "230"},
		{"refused-leaves-the-one-before", []string{"220 HOST ftp.acme.example", "504 HOST ftp.unknown.example"},
			"ursula", "530"},
		{"own-address", []string{"220 HOST 127.0.0.1"}, "ursula", "230"},
		{"address-undoes-a-name", []string{"220 HOST ftp.acme.example", "220 HOST 127.0.0.1"}, "ursula", "230"},
		{"rein-undoes", []string{"220 HOST ftp.acme.example", "220 REIN"}, "ursula", "230"},
		{"stays-after-a-failed-login", []string{"220 HOST ftp.acme.example", "331 USER alice", "530 PASS wrong"},
			"ursula", "530"},
		{"another-after-a-failed-login",
			[]string{"220 HOST ftp.acme.example", "331 USER x", "530 PASS x", "220 HOST ftp.umbrella.example"},
			"ursula", "230"},
		{"feat-between", []string{"220 HOST ftp.acme.example", "211 FEAT", "200 LANG fr", "200 NOOP"}, "ursula", "530"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := s.connect(t)
			for _, step := range tt.before {
				code, line, _ := strings.Cut(step, " ")
				c.must(code, line)
			}
			c.must("331", "USER "+tt.user)
			c.want(tt.answer, "PASS "+password)
		})
	}
}

// Section 3: once a user is logged in HOST is out of sequence, until REIN.
func TestHOSTAfterLogin(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	c.want("503 ", "HOST ftp.acme.example")
	c.want("503 ", "HOST ftp.umbrella.example")
	c.want("503 ", "HOST ftp.unknown.example")
	c.want(`257 "/" `, "PWD")
	c.must("220", "REIN")
	c.want("220", "HOST ftp.umbrella.example")
	c.Login("ursula", password)
}

// Section 3 and 4: between USER and PASS the user is not authenticated. HOST takes effect, and the server forgets
// the user name.
func TestHOSTBetweenUSERAndPASS(t *testing.T) {
	c := newSite(t, settings{}).connect(t)
	c.must("220", "HOST ftp.acme.example")
	c.must("331", "USER alice")
	c.must("220", "HOST ftp.umbrella.example")
	c.want("503 ", "PASS "+password)
	c.Login("ursula", password)
}

// Section 3 and 3.2: each host has its own files, greeting and language.
func TestHOSTChoosesTheEnvironment(t *testing.T) {
	s := newSite(t, settings{})
	s.put(t, "of acme", "x")
	s.put(t, "umbrella/of umbrella", "x")
	c := s.connect(t)
	if r := c.must("220", "HOST ftp.umbrella.example"); !strings.Contains(r, "Willkommen bei Umbrella") {
		t.Errorf("HOST: %q", r)
	}
	wantLanguage(c, "DE")
	if r := c.must("220", "HOST ftp.acme.example"); strings.Contains(r, "Umbrella") {
		t.Errorf("HOST: %q", r)
	}
	wantLanguage(c, "EN")
	c.must("220", "HOST ftp.umbrella.example")
	c.Login("ursula", password)
	c.want("213 1", "SIZE of umbrella")
	c.want("550 ", "SIZE of acme")
	c.want("550 ", "SIZE ../of acme")
}

// Section 3.1: the syntax of a hostname.
func TestSyntaxOfHOST(t *testing.T) {
	s := newSite(t, settings{hosts: "ftp.acme.example, bücher.example, a, 1.example"})
	label63 := strings.Repeat("a", 63)
	for _, tt := range []struct{ name, line, want string }{
		{"lower-case", "HOST ftp.acme.example", "220"},
		{"upper-case", "HOST FTP.ACME.EXAMPLE", "220"},
		{"mixed-case", "hOsT fTp.aCmE.ExAmPlE", "220"},
		{"a-label", "HOST xn--bcher-kva.example", "220"},
		{"a-label-in-capitals", "HOST XN--BCHER-KVA.EXAMPLE", "220"},
		{"one-label", "HOST a", "220"},
		{"digit-first", "HOST 1.example", "220"},
		{"dot-behind", "HOST ftp.acme.example.", "501 "},
		{"u-label", "HOST bücher.example", "501 "},
		{"unknown", "HOST ftp.unknown.example", "504 "},
		{"unknown-with-hyphens", "HOST a--b.c-d.example", "504 "},
		{"longest-label", "HOST " + label63 + ".example", "504 "},
		{"longest-name", "HOST " + label63 + "." + label63 + "." + label63 + "." + label63[:61], "504 "},
		{"another-ipv4", "HOST 192.0.2.1", "504 "},
		{"another-ipv6", "HOST [2001:db8::c000:201]", "504 "},
		{"another-ipv6-with-ipv4", "HOST [::192.0.2.1]", "504 "},
		{"ipv4-with-port", "HOST 192.0.2.1:2112", "501 "},
		{"ipv6-with-port", "HOST [2001:db8::c000:201]:2112", "501 "},
		{"name-with-port", "HOST ftp.acme.example:21", "501 "},
		{"ipv6-without-brackets", "HOST 2001:db8::c000:201", "501 "},
		{"ipv6-half-in-brackets", "HOST [2001:db8::c000:201", "501 "},
		{"ipv4-in-brackets", "HOST [192.0.2.1]", "501 "},
		{"name-in-brackets", "HOST [ftp.acme.example]", "501 "},
		{"zone", "HOST [fe80::1%25eth0]", "501 "},
		{"zone-of-the-system", "HOST [fe80::1%eth0]", "501 "},
		{"future-literal", "HOST [v1.x]", "501 "},
		{"nothing", "HOST", "501 "},
		{"empty", "HOST ", "501 "},
		{"two-spaces", "HOST  ftp.acme.example", "501 "},
		{"space-behind", "HOST ftp.acme.example ", "501 "},
		{"two-names", "HOST ftp.acme.example ftp.umbrella.example", "501 "},
		{"dot", "HOST .", "501 "},
		{"dot-first", "HOST .acme.example", "501 "},
		{"two-dots", "HOST ftp..example", "501 "},
		{"hyphen-first", "HOST -ftp.example", "501 "},
		{"hyphen-last", "HOST ftp-.example", "501 "},
		{"underscore", "HOST ftp_acme.example", "501 "},
		{"asterisk", "HOST *.acme.example", "501 "},
		{"url", "HOST ftp://ftp.acme.example/", "501 "},
		{"percent", "HOST ftp%2Eacme.example", "501 "},
		{"label-too-long", "HOST " + label63 + "a.example", "501 "},
		{"name-too-long", "HOST " + strings.Repeat("a.", 127) + "aa", "501 "},
		{"nul", "HOST ftp.acme.example\x00", "501 "},
		{"not-utf-8", "HOST ftp\xe9.example", "501 "},
		{"overlong-dot", "HOST ftp\xc0\xaeacme.example", "501 "},
		{"full-width-dot", "HOST ftp．acme.example", "501 "},
		{"ideographic-dot", "HOST ftp。acme.example", "501 "},
		{"kelvin", "HOST \u212a.example", "501 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := s.connect(t)
			c.want(tt.want, tt.line)
			c.want("200 ", "NOOP") // the connection stays open
		})
	}
}

// Section 3.2.2: HOST before AUTH remains in effect under TLS, and HOST is allowed after AUTH.
func TestHOSTAndTLS(t *testing.T) {
	s := newSite(t, settings{})
	t.Run("before-auth", func(t *testing.T) {
		c := s.connect(t)
		c.must("220", "HOST ftp.acme.example")
		c.startTLS(s, "")
		c.must("331", "USER ursula")
		c.want("530", "PASS "+password)
		c.Login("alice", password)
	})
	t.Run("after-auth", func(t *testing.T) {
		c := s.connect(t)
		c.startTLS(s, "")
		c.must("220", "HOST ftp.acme.example")
		c.must("331", "USER ursula")
		c.want("530", "PASS "+password)
		c.Login("alice", password)
	})
	t.Run("server-name-chooses", func(t *testing.T) {
		c := s.connect(t)
		c.startTLS(s, "ftp.umbrella.example")
		wantLanguage(c, "DE")
		c.must("331", "USER alice")
		c.want("530", "PASS "+password)
		c.Login("ursula", password)
	})
	t.Run("server-name-and-the-same-host", func(t *testing.T) {
		c := s.connect(t)
		c.startTLS(s, "ftp.umbrella.example")
		c.must("220", "HOST FTP.umbrella.example")
		c.Login("ursula", password)
	})
}

// Section 3.2.2 and 4: HOST must match the TLS server name, or is rejected.
func TestHOSTMatchesTheServerName(t *testing.T) {
	s := newSite(t, settings{})
	for _, tt := range []struct{ named, host, want string }{
		{"ftp.acme.example", "ftp.acme.example", "220"},
		{"ftp.acme.example", "FTP.ACME.example", "220"},
		{"ftp.acme.example", "ftp.umbrella.example", "504 "},
		{"ftp.umbrella.example", "ftp.acme.example", "504 "},
		{"ftp.nobody.example", "ftp.acme.example", "504 "},
		{"", "ftp.acme.example", "220"},
	} {
		c := s.connect(t)
		c.startTLS(s, tt.named)
		c.want(tt.want, "HOST "+tt.host)
		c.want("200 ", "NOOP")
	}
	t.Run("host-first", func(t *testing.T) {
		c := s.connect(t)
		c.must("220", "HOST ftp.umbrella.example")
		c.must("234", "AUTH TLS")
		cfg := s.tls.Clone()
		cfg.ServerName = "ftp.acme.example"
		if err := tls.Client(c.Conn.Conn, cfg).HandshakeContext(t.Context()); err == nil {
			t.Error("TLS was negotiated for another host than the host of HOST")
		}
	})
}

// Section 4: HOST before AUTH, or the TLS server name, selects the certificate.
func TestHOSTChoosesTheCertificate(t *testing.T) {
	dir := t.TempDir()
	trusted := map[string]*x509.CertPool{}
	for _, name := range []string{"server", "acme"} {
		cert, key := must.Certificate(t, &x509.Certificate{DNSNames: hosts})
		trusted[name] = must.CertPool(cert)
		for suffix, content := range map[string]string{".crt": cert, ".key": key} {
			must.WriteFile(t, filepath.Join(dir, name+suffix), content)
		}
	}
	files := func(name string) string {
		return fmt.Sprintf(
			"tls: {cert_file: %q, key_file: %q}", filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
	}
	s := newSite(t, settings{server: files("server"), acme: files("acme")})
	for _, tt := range []struct{ name, host, named, shown string }{
		{"none", "", "", "server"},
		{"host", "ftp.acme.example", "", "acme"},
		{"server-name", "", "ftp.acme.example", "acme"},
		{"both", "ftp.acme.example", "ftp.acme.example", "acme"},
		{"host-without-its-own", "ftp.umbrella.example", "", "server"},
		{"server-name-without-its-own", "", "ftp.umbrella.example", "server"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := s.connect(t)
			if tt.host != "" {
				c.must("220", "HOST "+tt.host)
			}
			c.must("234", "AUTH TLS")
			// checked below; a client without a server name has none to check
			cfg := &tls.Config{ServerName: tt.named, InsecureSkipVerify: true}
			conn := tls.Client(c.Conn.Conn, cfg)
			must.OK(t, conn.HandshakeContext(t.Context()))
			shown := conn.ConnectionState().PeerCertificates[0]
			if _, err := shown.Verify(x509.VerifyOptions{Roots: trusted[tt.shown]}); err != nil {
				t.Errorf("the certificate does not belong to %s: %v", tt.shown, err)
			}
		})
	}
}

// Section 3.1 and 3.2: if no tenant has a hostname, HOST accepts any name and selects no tenant.
func TestUnknownHOST(t *testing.T) {
	c := newSite(t, settings{hostless: true}).connect(t)
	c.must("220", "HOST ftp.unknown.example")
	c.want("504 ", "HOST 192.0.2.1")
	c.want("504 ", "HOST [2001:db8::1]")
	c.want("501 ", "HOST a..b")
	c.Login("ursula", password)
}

// Section 3: HOST takes effect at its position among pipelined commands.
func TestHOSTInAPipeline(t *testing.T) {
	c := newSite(t, settings{}).connect(t)
	_, _ = io.WriteString(
		c.Conn.Conn, "HOST ftp.umbrella.example\r\nUSER ursula\r\nPASS "+password+
			"\r\nHOST ftp.acme.example\r\nQUIT\r\n")
	for _, want := range []string{"220", "331", "230", "503", "221"} {
		c.wantReply(want)
	}
}
