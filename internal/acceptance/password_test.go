package acceptance_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A partner changes the password with curl and lftp, and logs in with it at once. Neither password is in the log, the
// audit log or the users file, whatever the outcome.
func TestUsersChangeTheirPassword(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	users, audit := filepath.Join(dir, "users.yaml"), filepath.Join(dir, "audit.log")
	must.WriteFile(t, users, `# partners
users:
  partner: {password_hash: `+sha512Crypt+`, permissions: [list, read, password]} # since 2019
  other: {password_hash: `+sha512Crypt+`, permissions: [list, read]}
  debian: {password_hash: `+sha512Crypt+`, permissions: [list, read, password], language: de}
`)
	s := newReloadSite(t, "      carol: {password_hash: HASH, permissions: [password]}", "    users_file: "+users, "log: {level: debug}", "audit: {file: "+audit+"}")
	const first, second, third = `a "zebra" grazes`, "giraffes stand 2", "sesame opens 3"
	quoted := func(password string) string { return `"` + strings.ReplaceAll(password, `"`, `""`) + `"` }
	pswd := func(current, next string) string { return "SITE PSWD " + quoted(current) + " " + quoted(next) }

	refused := func(p *process) {
		t.Helper()
		if p.wait() == 0 {
			t.Errorf("%v has succeeded", p)
		}
	}
	open := s.login("partner@acme", 230)
	s.pswdByCurl("partner@acme", password, pswd(password, first)).succeed()
	open.Command(257, "PWD") // other sessions go on
	refused(s.pswdByCurl("partner@acme", password, "PWD"))
	refused(s.pswdByCurl("partner@acme", first, pswd("wrong-sesame", second)))
	refused(s.pswdByCurl("other@acme", password, pswd(password, second)))
	refused(s.pswdByCurl("carol@acme", password, pswd(password, second)))

	l := newLftp(t, s.site, way{tls: "explicit", data: "passive"})
	l.setup = strings.NewReplacer("alice@acme", "partner@acme", lftpQuote(password), lftpQuote(first)).Replace(l.setup)
	l.run("quote " + lftpQuote(pswd(first, second)))
	s.pswdByCurl("partner@acme", second, pswd(second, third)).succeed()

	c := s.login("debian@acme", 230)
	c.WantReply(530, "Dieser Server verlangt Verschlüsselung (FTPS, explizites TLS); bitte senden Sie zuerst AUTH TLS.",
		pswd(password, second))
	if text := must.ReadFile(t, users); !strings.HasPrefix(text, "# partners\n") || strings.Count(text, "$6$") > 2 ||
		!strings.Contains(text, ", permissions: [list, read, password]} # since 2019\n") {
		t.Errorf("the users file is\n%s", text)
	}
	s.stop(t)
	lines, log := must.ReadFile(t, audit), s.server.stderr.String()
	for _, line := range []string{
		`"user":"partner","tls":true,"tls_version":"TLS 1.3","tls_cipher":"TLS_AES_128_GCM_SHA256","outcome":"ok","command":"SITE","code":200`,
		`"outcome":"failed","command":"SITE","code":530`, `"outcome":"failed","command":"SITE","code":550`,
	} {
		if !strings.Contains(lines, line) || !strings.Contains(lines, `"event":"password"`) {
			t.Errorf("the audit log lacks %s:\n%s", line, lines)
		}
	}
	if !strings.Contains(log, "SITE PSWD ***") || !strings.Contains(log, "the user is in users, not in users_file") {
		t.Errorf("the log is\n%s", log)
	}
	everything := log + lines + must.ReadFile(t, users)
	for _, secret := range []string{"zebra", "giraffes", "sesame", "p4ss"} {
		if strings.Contains(everything, secret) {
			t.Errorf("%q is in the log\n%s\nor in the audit log\n%s", secret, log, lines)
		}
	}
}

// pswdByCurl starts curl, which logs in under TLS and sends a command.
func (s *reloadSite) pswdByCurl(user, password, line string) *process {
	s.t.Helper()
	return launch(s.t, command(s.t, "curl"), "-q", "--silent", "--show-error", "--cacert", s.ca, "--ssl-reqd",
		"--user", user+":"+password, "--quote", line, "--head", "ftp://"+s.address+"/")
}
