package control_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/users/account"
)

// SITE PSWD returns the reason why the password was not changed.
func TestSitePswd(t *testing.T) {
	for _, test := range []struct {
		argument string
		err      error // of the backend
		want     string
		changed  string
	}{
		{`demo new`, nil, "200 Your password has been changed.", "new"},
		{`"demo" "a ""new"" one"`, nil, "200 ", `a "new" one`},
		{`demo n\u00e9w`, nil, "200 ", `n\u00e9w`},
		{"demo caf\u00e9", nil, "200 ", "caf\u00e9"},
		{`demo`, nil, "501 Syntax: SITE PSWD <SP> password <SP> new-password", ""},
		{`demo a new one`, nil, "501 ", ""},
		{"demo \xe9t\xe9", nil, "501 ", ""},
		{"demo a\x01b", nil, "501 ", ""},
		{`wrong new`, nil, "530 The user name or the password is incorrect.", ""},
		{`demo new`, account.ErrPasswordTooShort, "550 The new password is too short; the minimum length is 12.", ""},
		{`demo new`, account.ErrPasswordTooWeak, "550 This password is too easy to guess. Please choose another one.", ""},
		{`demo new`, account.ErrPasswordElsewhere,
			"550 Your password is managed by another system. Please change it there.", ""},
		{`demo new`, fmt.Errorf("%w: no file", account.ErrPasswordFixed),
			"550 Your password cannot be changed here. Please contact the administrator.", ""},
		{`demo new`, fmt.Errorf("%w: changed", account.ErrPasswordNotStored),
			"451 The server could not process the command. Please try again.", ""},
		{`demo new`, fs.ErrPermission, "550 Permission denied.", ""},
	} {
		t.Run(test.argument+" "+test.want, func(t *testing.T) {
			var b *backend
			s := newSite(t, func(cfg *control.Config) {
				b = cfg.Backend.(*backend)
				b.passwordErrors = map[string]error{"new": test.err}
			})
			c := s.loginTLS()
			c.do("SITE PSWD "+test.argument, test.want)
			c.do("PWD", "257 ") // the user stays logged in
			if b.changed != test.changed {
				t.Errorf("the new password is %q, want %q", b.changed, test.changed)
			}
		})
	}
}

// A server with a certificate does not accept new passwords without TLS, a server without one does.
func TestSitePswdNeedsTLS(t *testing.T) {
	t.Run("with-a-certificate", func(t *testing.T) {
		c := newSite(t, nil).login()
		c.do("SITE PSWD demo new", "530 This server requires encryption (FTPS, explicit TLS); please send AUTH TLS first.")
		c.do("PWD", "257 ")
	})
	t.Run("without-a-certificate", func(t *testing.T) {
		newSite(t, func(cfg *control.Config) { cfg.TLS = nil }).login().do("SITE PSWD demo new", "200 ")
	})
}

// A user who must change the password gets a notice at the login, and can do nothing else until it is done.
func TestMustChangePassword(t *testing.T) {
	const notice = "Please choose a new password with SITE PSWD before you continue."
	demo := loginTo(config.Tenant{})
	demo.User.User = &config.User{MustChangePassword: true}
	s := newSite(t, func(cfg *control.Config) {
		b := cfg.Backend.(*backend)
		b.demo, b.passwordErrors = demo, map[string]error{"weak": account.ErrPasswordTooWeak}
		b.onChange = func() { demo.User.User = &config.User{} }
	})
	c := s.connect()
	c.startTLS()
	c.do("USER demo", "331 Password required for demo.")
	c.do("PASS demo", "230-"+notice+"\n230 Login successful.")
	allowed := []string{
		"FEAT", "HELP", "HELP SITE", "LANG en", "NOOP", "OPTS UTF8 ON", "PBSZ 0", "PWD", "SITE HELP", "STAT", "STRU F", "SYST", "TYPE I",
	}
	for _, command := range allowed {
		c.write(command + "\r\n")
		if r := c.reply(); strings.HasPrefix(r, "530") || strings.HasPrefix(r, "5") {
			t.Errorf("%s: %s", command, r)
		}
	}
	for _, command := range []string{
		"RETR a", "STOR a", "APPE a", "STOU", "LIST", "NLST", "MLSD", "MLST /", "SIZE a", "MDTM a", "DELE a", "MKD a", "RMD a", "CWD /",
		"CDUP", "RNFR a", "RNTO b", "PASV", "EPSV", "PORT 127,0,0,1,9,9", "EPRT |1|127.0.0.1|9|", "STAT /", "REST 1", "HASH a", "XCRC a",
		"SITE COPY a b", "SITE QUOTA", "SITE UTIME 20260101000000 a", "SITE URL a", "SITE CHMOD 600 a", "XMKD a", "MFMT 20260101000000 a",
	} {
		c.do(command, "530 "+notice)
	}
	c.do("SITE PSWD demo weak", "550 This password is too easy to guess.")
	c.do("MKD a", "530 "+notice)
	c.do("SITE PSWD demo new", "200 ")
	c.do("MKD a", "257 ")
}

func TestSitePswdNeedsLogin(t *testing.T) {
	c := newSite(t, nil).connect()
	c.do("SITE PSWD demo new", "530 Please log in with USER and PASS.")
	c.do("HELP SITE PSWD", "214 Syntax: SITE PSWD <SP> password <SP> new-password")
}

// Wrong passwords in SITE PSWD end the session like wrong passwords in PASS.
func TestTooManyWrongPasswordsInSitePswd(t *testing.T) {
	c := newSite(t, func(cfg *control.Config) { cfg.MaxLogins = 3 }).loginTLS()
	c.do("SITE PSWD wrong new", "530 ")
	c.do("SITE PSWD wrong new", "530 ")
	c.do("SITE PSWD wrong new", "421 Too many failed logins; closing the connection.")
	c.WantClosed()
}

// A password in the charset of the tenant is stored as UTF-8.
func TestSitePswdInACharset(t *testing.T) {
	latin, err := pathname.ParseEncoding("windows-1252")
	must.OK(t, err)
	demo := loginTo(config.Tenant{})
	demo.Compatibility.Charset.Encoding = latin
	var b *backend
	s := newSite(t, func(cfg *control.Config) { b = cfg.Backend.(*backend); b.demo = demo })
	s.loginTLS().do("SITE PSWD demo \xe9t\xe9", "200 ")
	if b.changed != "été" {
		t.Errorf("the new password is %q", b.changed)
	}
}

// Neither password is in the debug log, whatever the outcome and however the command is written.
func TestPasswordsOfSitePswdAreNotLogged(t *testing.T) {
	var log bytes.Buffer
	s := newSite(t, func(cfg *control.Config) {
		cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		cfg.Backend.(*backend).passwordErrors = map[string]error{
			"sesame-fixed": fmt.Errorf("%w: why", account.ErrPasswordFixed),
		}
	})
	c := s.connect()
	c.do("SITE PSWD sesame-old sesame-new", "530 ")
	c = s.loginTLS()
	for _, command := range []string{
		"SITE PSWD sesame-old sesame-new", "site pswd sesame-old sesame-new", "SITE PSWD sesame", "SITE PSWD  sesame sesame",
		"SITE  PSWD sesame sesame", "SITE PSWDsesame sesame", "PSWD sesame sesame", "SITE PSWD demo sesame-fixed",
	} {
		c.write(command + "\r\n")
		c.reply()
	}
	c.do("SITE PSWD demo sesame-new", "200 ")
	s.shutdown() // writes the last lines
	if text := log.String(); strings.Contains(text, "sesame-") || strings.Contains(text, "PSWD sesame") ||
		!strings.Contains(text, `"SITE PSWD ***"`) || !strings.Contains(text, "the server cannot store a new password: why") {
		t.Errorf("the log is\n%s", text)
	}
}
