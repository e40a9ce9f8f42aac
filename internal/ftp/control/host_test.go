package control_test

import (
	"crypto/tls"
	"strings"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/users/account"
)

func TestHOST(t *testing.T) {
	s := newSite(t, func(cfg *control.Config) { cfg.DefaultLanguage = language.Spanish })
	c := s.connect()
	for _, step := range []struct{ argument, want string }{
		{"ftp.example.org", "504 "},
		{"ftp.example.com:21", "501 "},
		{"ftp.example.com.", "501 "},
		{"ftp..example.com", "501 "},
		{"-ftp.example.com", "501 "},
		{"ftp_example.com", "501 "},
		{"f\u00fc.example.com", "501 "},
		{" ftp.example.com", "501 "},
		{"[::1", "501 "},
		{"::1", "501 "},
		{"[::1]:21", "501 "},
		{"[127.0.0.1]", "501 "},
		{"127.0.0.1:21", "501 "},
		{"[fe80::1%eth0]", "501 "},
		{"[2001:db8::1]", "504 "},
		{"192.0.2.1", "504 "},
		{"127.0.0.1", "220 "}, // the server's own
		{"FTP.Example.com", "220-Willkommen!\n220 Bitte eintreten."},
	} {
		c.do("HOST "+step.argument, step.want)
	}
	if r := c.do("FEAT", "211-"); !strings.Contains(r, "DE*") {
		t.Errorf("HOST does not bring the tenant's language: %q", r)
	}
	c.do("LANG fr", "200 ")
	c.do("HOST ftp.example.org", "504 ")
	if r := c.do("FEAT", "211-"); !strings.Contains(r, "FR*") {
		t.Errorf("a HOST that was refused changes the language: %q", r)
	}
}

// Before the login the last HOST counts (RFC 7151 3).
func TestHOSTAgain(t *testing.T) {
	c := newSite(t, nil).connect()
	c.do("HOST ftp.example.com", "220-Willkommen!")
	c.do("USER demo", "331 ")
	c.do("HOST 127.0.0.1", "220 ")
	if r := c.do("FEAT", "211-"); !strings.Contains(r, "EN*") {
		t.Errorf("the host before lends its language: %q", r)
	}
	c.do("PASS demo", "503 ") // USER was for the host before
	c.do("USER demo", "331 ")
	c.do("PASS demo", "230 ")
	c.do("HOST ftp.example.com", "503 ")
	c.do("REIN", "220 ")
	c.do("HOST ftp.example.com", "220-Willkommen!")
}

// lftp says LANG and OPTS UTF8 ON first, and then names the address that it has dialled.
func TestHOSTAfterLANG(t *testing.T) {
	s := newTenantSite(t, account.Login{Tenant: &account.Tenant{Name: "demo", Encoding: encoding(t, "shift_jis")}})
	s.putNames("\u65e5")
	for _, utf8 := range []string{"OPTS UTF8 ON", "LANG fr"} {
		for _, host := range []string{"127.0.0.1", "ftp.example.com"} {
			c := s.connect()
			c.do(utf8, "200 ")
			c.do("HOST "+host, "220")
			c.do("USER demo", "331 ")
			c.do("PASS demo", "230 ")
			if got := c.download("NLST"); got != "\u65e5\r\n" {
				t.Errorf("%s, HOST %s: NLST: %q", utf8, host, got)
			}
			if got := c.do("FEAT", "211-"); strings.Contains(got, "FR*") != (utf8 == "LANG fr" && host == "127.0.0.1") {
				t.Errorf("%s, HOST %s: %s", utf8, host, got)
			}
		}
	}
	c := s.connect()
	c.do("LANG fr", "200 ")
	c.do("REIN", "220 ")
	c.do("USER demo", "331 ")
	c.do("PASS demo", "230 ")
	if got := c.download("NLST"); got != "\x93\xfa\r\n" {
		t.Errorf("REIN: NLST: %q", got)
	}
}

func TestHOSTAcceptsUnknownNames(t *testing.T) {
	s := newSite(t, func(cfg *control.Config) { cfg.AcceptUnknownHosts = true })
	c := s.connect()
	c.do("HOST ftp.example.org", "220 Welcome to ftp.example.org.")
	c.do("HOST 192.0.2.1", "504 ") // never another address (RFC 7151 3.1)
	c.do("USER demo", "331 ")
	c.do("PASS demo", "230 ")
}

// HOST must name what the client has named to TLS (RFC 7151 3.2.2).
func TestHOSTUnderTLS(t *testing.T) {
	s := newSite(t, func(cfg *control.Config) {
		cfg.Backend.(*backend).hosts["localhost"] = &account.Tenant{Name: "local", Greeting: map[string]string{"en": "Local."}}
	})
	s.tls.ServerName = "localhost"
	c := s.connect()
	c.startTLS()
	c.do("HOST ftp.example.com", "504 ")
	c.do("HOST Localhost", "220 Local.")
}

func TestTLSNamesAnotherHost(t *testing.T) {
	s := newSite(t, nil)
	s.tls.ServerName = "localhost"
	c := s.connect()
	c.do("HOST ftp.example.com", "220-")
	c.do("AUTH TLS", "234 ")
	if err := tls.Client(c.Conn.Conn, s.tls).Handshake(); err == nil {
		t.Error("TLS was agreed upon for another host than HOST's")
	}
}

// The certificate is that of the host which HOST has chosen (RFC 7151 4).
func TestHOSTChoosesTheCertificate(t *testing.T) {
	asked := make(chan string, 2)
	s := newSite(t, func(cfg *control.Config) {
		certificate := cfg.TLS.Certificates[0]
		cfg.TLS.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			asked <- hello.ServerName
			return &certificate, nil
		}
		cfg.TLS.Certificates = nil
	})
	s.tls.ServerName, s.tls.InsecureSkipVerify = "", true // a client that names no host to TLS
	c := s.connect()
	c.do("HOST ftp.example.com", "220-")
	c.startTLS()
	c.do("USER marie", "331 ")
	c.do("PASS demo", "230-")
	c.protectData()
	c.do("CWD /", "250 ")
	c.store("secret", "under TLS")
	for _, connection := range []string{"control", "data"} {
		if name := <-asked; name != "ftp.example.com" {
			t.Errorf("the certificate of the %s connection is that of %q", connection, name)
		}
	}
}
