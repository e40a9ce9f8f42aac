package server

import (
	"strings"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// dialFrom connects from an address of this machine, and expects a first reply with this code.
func dialFrom(t *testing.T, srv *Server, from string, code int) (c *ftptest.Client, text string) {
	t.Helper()
	c = ftptest.New(t, ftptest.DialFrom(t, from, srv.Addr().String()))
	return c, c.Reply(code)
}

// hasMetric reports whether /metrics has a line.
func hasMetric(t *testing.T, srv *Server, line string) bool {
	t.Helper()
	_, body := get(t, srv, "/metrics")
	return strings.Contains(body, line+"\n")
}

// wantMetrics expects lines of /metrics.
func wantMetrics(t *testing.T, srv *Server, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !hasMetric(t, srv, line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
}

// A connection above the limit gets 421 in the language of the server. When a session ends, another one can connect.
func TestSessionLimits(t *testing.T) {
	s, cfg := simulated(t)
	cfg.DefaultLanguage = language.German
	cfg.Limits.Server.Sessions, cfg.Limits.Address.Sessions = 3, 2
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	const one, other = "127.0.0.1", "127.0.0.2"

	dialFrom(t, srv, one, 220)
	second, _ := dialFrom(t, srv, one, 220)
	third, text := dialFrom(t, srv, one, 421)
	if text != "Zu viele Verbindungen von Ihrer Adresse. Bitte versuchen Sie es später erneut." {
		t.Errorf("unexpected refusal %q", text)
	}
	third.WantClosed()
	second.Login("alice", servicetest.Password)
	fourth, _ := dialFrom(t, srv, other, 220)
	fifth, _ := dialFrom(t, srv, other, 421)
	fifth.WantClosed()

	fourth.Command(221, "QUIT")
	fourth.WantClosed()
	second.Command(221, "QUIT")
	second.WantClosed()
	dialFrom(t, srv, one, 220)
	wantMetrics(t, srv,
		`babelftp_refusals_total{limit="server.sessions",tenant=""} 1`,
		`babelftp_refusals_total{limit="address.sessions",tenant=""} 1`,
		"babelftp_sessions_total 4",
		"babelftp_sessions 2",
	)
}

// Half of the sessions may be before their login. A login frees a place for another session, and REIN takes it again.
func TestSessionsBeforeLogin(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Limits.Server.Sessions = 4
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	const one, other = "127.0.0.1", "127.0.0.2"

	first, _ := dialFrom(t, srv, one, 220)
	first.Login("alice", servicetest.Password)
	second, _ := dialFrom(t, srv, one, 220)
	dialFrom(t, srv, other, 220)
	dialFrom(t, srv, other, 421)
	first.Command(220, "REIN")
	second.Login("alice", servicetest.Password)
	dialFrom(t, srv, one, 421)
	first.Command(221, "QUIT")
	first.WantClosed()
	dialFrom(t, srv, one, 220)
	wantMetrics(t, srv, `babelftp_refusals_total{limit="sessions_before_login",tenant=""} 2`)
}

// A user above a limit of the tenant gets 421 after the correct password, in the language of the tenant.
func TestTenantLimits(t *testing.T) {
	t.Parallel()
	s, cfg := simulated(t)
	acme := cfg.Tenants["acme"]
	acme.DefaultLanguage = language.French
	acme.Limits.Tenant.Sessions, acme.Limits.User.Sessions = 2, 1
	for _, name := range []string{"bob", "carol"} {
		acme.Users[name] = &config.User{PasswordHash: servicetest.PasswordHash()}
	}
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	refused := func(user, reason string) {
		t.Helper()
		c := ftptest.Dial(t, srv.Addr().String())
		c.Command(331, "USER "+user)
		if text := c.Command(
			421, "PASS "+servicetest.Password); text != reason+" Veuillez réessayer plus tard." {
			t.Errorf("unexpected refusal %q", text)
		}
		c.WantClosed()
	}

	alice := ftptest.Dial(t, srv.Addr().String())
	alice.Login("alice", servicetest.Password)
	refused("alice", "Trop de connexions de cet utilisateur.")
	wrong := ftptest.Dial(t, srv.Addr().String())
	wrong.Command(331, "USER alice")
	wrong.Command(530, "PASS wrong")
	bob := ftptest.Dial(t, srv.Addr().String())
	bob.Login("bob", servicetest.Password)
	refused("carol", "Trop de connexions.")

	alice.Command(220, "REIN") // ends the login but not the session
	alice.Login("carol", servicetest.Password)
	wantMetrics(t, srv,
		`babelftp_refusals_total{limit="tenant.sessions",tenant="acme"} 1`,
		`babelftp_refusals_total{limit="user.sessions",tenant="acme"} 1`,
	)
}
