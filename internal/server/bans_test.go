package server

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// The reply to a banned client in French, and the reply to a client in a refused network.
const (
	banned = "L’authentification est impossible pour le moment. Veuillez réessayer plus tard."
	denied = "Les connexions depuis votre adresse ne sont pas autorisées."
)

func networks(t *testing.T, texts ...string) (all []value.Network) {
	t.Helper()
	for _, text := range texts {
		var n value.Network
		must.OK(t, n.UnmarshalText([]byte(text)))
		all = append(all, n)
	}
	return all
}

// bansBehind returns a configuration with bans in French, and the client of an administrator.
func bansBehind(t *testing.T) (*config.Config, *s3test.Server, *admin.Client) {
	t.Helper()
	s, cfg := simulated(t)
	cfg.DefaultLanguage = language.French
	cfg.Limits.FailedLoginDelay = 0
	cfg.Limits.Bans.HalfLife = 24 * time.Hour // no failure is forgotten, however slow the machine is
	dir := servicetest.SocketDir(t)
	cfg.AdminSocket = filepath.Join(dir, "admin.sock")
	return cfg, s, admin.NewClient(cfg.AdminSocket)
}

// An address that guesses passwords is refused, and its sessions before the login end. Logged-in sessions continue,
// and an administrator ends the ban.
func TestBanOfAnAddress(t *testing.T) {
	cfg, s, administrator := bansBehind(t)
	cfg.Limits.Bans.AddressScore = 6
	log := &servicetest.Log{}
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: log.Logger()})
	const attacker = "127.0.0.2"
	waiting, _ := dialFrom(t, srv, attacker, 220)
	loggedIn, _ := dialFrom(t, srv, attacker, 220)
	loggedIn.Login("alice", servicetest.Password)
	guessing := []*ftptest.Client{waiting}
	for _, code := range []int{530, 530, 530, 530, 530, 421} { // the last one also cuts its own session
		c, _ := dialFrom(t, srv, attacker, 220)
		c.Command(331, "USER alice")
		c.Command(code, "PASS guess")
		if code == 530 {
			guessing = append(guessing, c)
		}
	}
	c, text := dialFrom(t, srv, attacker, 421)
	if text != banned {
		t.Errorf("unexpected refusal %q", text)
	}
	c.WantClosed()
	for _, c := range guessing {
		if text := c.Reply(421); text != banned {
			t.Errorf("session of the address before login: got %q", text)
		}
		c.WantClosed()
	}
	loggedIn.Command(200, "NOOP")
	other, _ := dialFrom(t, srv, "127.0.0.1", 220)
	other.Login("alice", servicetest.Password)

	all, err := administrator.Bans(t.Context())
	if err != nil || len(all) != 1 || all[0].Name != attacker || all[0].Reason != "failed logins" {
		t.Errorf("unexpected bans %v: %v", all, err)
	}
	if _, err := administrator.Unban(t.Context(), attacker); err != nil {
		t.Fatal(err)
	}
	free, _ := dialFrom(t, srv, attacker, 220)
	free.Login("alice", servicetest.Password)
	// Seven sessions were cut, and one connection was refused.
	wantMetrics(t, srv, `babelftp_bans_total{kind="address"} 1`, `babelftp_refusals_total{limit="bans",tenant=""} 8`)
	lines := 0
	for _, line := range log.Take() {
		if strings.Contains(line, "msg=banned kind=address name="+attacker) {
			lines++
		}
	}
	if lines != 1 {
		t.Errorf("got %d log lines about the ban, want 1", lines)
	}
}

// A user whose password is guessed from many addresses is refused even with the correct password. An unknown name gets
// the same replies.
func TestBanOfAUser(t *testing.T) {
	cfg, s, administrator := bansBehind(t)
	cfg.Limits.Bans.UserScore = 3
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	login := func(from, user, password string, code int) {
		t.Helper()
		c, _ := dialFrom(t, srv, from, 220)
		c.Command(331, "USER "+user)
		c.Command(code, "PASS "+password)
	}
	for _, user := range []string{"alice", "nobody"} {
		for _, from := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"} {
			login(from, user, "guess", 530)
		}
		login("127.0.0.5", user, "guess", 421)
	}
	login("127.0.0.1", "alice@acme", servicetest.Password, 421)
	if _, err := administrator.Unban(t.Context(), "alice@acme"); err != nil {
		t.Fatal(err)
	}
	login("127.0.0.1", "alice", servicetest.Password, 230)
	if _, err := administrator.Ban(t.Context(), "alice@acme", time.Hour); err != nil {
		t.Fatal(err)
	}
	login("127.0.0.1", "alice", servicetest.Password, 421)
}

// Garbage bans an address, unless the address is allowed, such as the address of a load balancer.
func TestBanForGarbage(t *testing.T) {
	cfg, s, _ := bansBehind(t)
	cfg.Limits.Bans.AddressScore = 2
	cfg.Limits.Server.Allow = networks(t, "127.0.0.2")
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
		c, _ := dialFrom(t, srv, from, 220)
		for range 20 {
			c.Command(500, "GET / HTTP/1.1")
		}
	}
	dialFrom(t, srv, "127.0.0.2", 220)
	dialFrom(t, srv, "127.0.0.3", 421)
}

// The networks of the server, of a tenant and of a user restrict clients. The last two only apply after the correct
// password.
func TestNetworks(t *testing.T) {
	cfg, s, _ := bansBehind(t)
	acme := cfg.Tenants["acme"]
	cfg.Limits.Server.Deny = networks(t, "127.0.0.9")
	acme.Limits.Tenant.Deny = networks(t, "127.0.0.0/24")
	acme.Limits.Tenant.Allow = networks(t, "127.0.0.1", "127.0.0.2")
	acme.Users["bob"] = &config.User{PasswordHash: servicetest.PasswordHash()}
	acme.Users["bob"].Limits.Deny = networks(t, "127.0.0.2")
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	c, text := dialFrom(t, srv, "127.0.0.9", 421)
	if text != denied {
		t.Errorf("unexpected refusal %q", text)
	}
	c.WantClosed()
	for _, tc := range []struct {
		from, user, password string
		code                 int
	}{
		{"127.0.0.1", "alice", servicetest.Password, 230},
		{"127.0.0.2", "alice", servicetest.Password, 230},
		{"127.0.0.3", "alice", servicetest.Password, 421},
		{"127.0.0.3", "alice", "wrong", 530},
		{"127.0.0.1", "bob", servicetest.Password, 230},
		{"127.0.0.2", "bob", servicetest.Password, 421},
	} {
		c, _ := dialFrom(t, srv, tc.from, 220)
		c.Command(331, "USER "+tc.user)
		c.Command(tc.code, "PASS "+tc.password)
	}
	wantMetrics(
		t, srv, `babelftp_refusals_total{limit="deny",tenant="acme"} 2`,
		`babelftp_refusals_total{limit="deny",tenant=""} 1`)
}
