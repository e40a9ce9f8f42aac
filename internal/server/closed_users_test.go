package server

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A disabled or expired user learns about it only after the correct password, in the user's language. Such logins do
// not count toward bans.
func TestClosedUsers(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Limits.Bans.UserScore, cfg.Limits.FailedLoginDelay = 2, 0
	hash, past := servicetest.PasswordHash(), value.NewExpiry(time.Now().Add(-time.Hour))
	for name, user := range map[string]*config.User{
		"off":    {PasswordHash: hash, Disabled: true},
		"aus":    {PasswordHash: hash, Disabled: true, Language: language.German},
		"over":   {PasswordHash: hash, Expires: past},
		"vorbei": {PasswordHash: hash, Expires: past, Language: language.German},
		"soon":   {PasswordHash: hash, Expires: value.NewExpiry(time.Now().Add(time.Hour))},
		"none":   {Disabled: true},
	} {
		cfg.Tenants["acme"].Users[name] = user
	}
	cfg.MaxFailedLogins = 20
	lines := auditLines(t, cfg, s, func(c *ftptest.Client) {
		login := func(user, password, want string) {
			t.Helper()
			c.Command(331, "USER "+user)
			c.WantReply(530, want, "PASS "+password)
		}
		for range 3 {
			login("off", servicetest.Password, "This user account is disabled. Please contact the administrator.")
		}
		login("off", "wrong", "The user name or the password is incorrect.")
		login("none", "wrong", "The user name or the password is incorrect.")
		login("aus", servicetest.Password, "Dieses Benutzerkonto ist deaktiviert. Bitte wenden Sie sich an den Administrator.")
		login("vorbei", servicetest.Password, "Dieses Benutzerkonto ist abgelaufen. Bitte wenden Sie sich an den Administrator.")
		c.Command(200, "LANG en")
		login("vorbei", servicetest.Password, "This user account has expired. Please contact the administrator.")
		login("over", servicetest.Password, "This user account has expired. Please contact the administrator.")
		c.Login("soon", servicetest.Password)
	})
	var got []string
	for _, l := range lines {
		if line := fmt.Sprint(l["event"], " ", l["user"], " ", l["reason"]); !slices.Contains(got, line) {
			got = append(got, line)
		}
	}
	want := []string{
		"login off user_disabled", "login off wrong_password", "login none wrong_password", "login aus user_disabled",
		"login vorbei user_expired", "login over user_expired", "login soon <nil>", "logout soon <nil>",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit log has\n%q\nwant\n%q", got, want)
	}
}

// The sessions of a user end when the user is disabled or has expired. Other sessions continue.
func TestReloadDisablesUsers(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Audit.File = filepath.Join(t.TempDir(), "audit.log")
	users := cfg.Tenants["acme"].Users
	users["carol"] = &config.User{PasswordHash: servicetest.PasswordHash(), Language: language.French}
	users["dave"] = &config.User{PasswordHash: servicetest.PasswordHash()}
	t.Run("serve", func(t *testing.T) { // the last lines are written at the end
		srv := start(t, cfg, Options{AWS: s.AWSConfig()})
		alice, carol, dave := session(t, srv, "alice"), session(t, srv, "carol"), session(t, srv, "dave")
		reload(t, srv, changed(t, cfg, func(next *config.Config) {
			off, over := *users["alice"], *users["carol"]
			off.Disabled, over.Expires = true, value.NewExpiry(time.Now().Add(-time.Minute))
			next.Tenants["acme"].Users["alice"], next.Tenants["acme"].Users["carol"] = &off, &over
		}, "acme"))
		if last := srv.tenants.LastLogins(); len(last) != 3 || last[0].User != "alice" || last[2].User != "dave" ||
			time.Since(last[0].Time) > time.Minute {
			t.Errorf("unexpected last logins %v", last)
		}
		if got := alice.Reply(421); got != "This user account is disabled. Please contact the administrator." {
			t.Errorf("reply to alice: got %q", got)
		}
		if got := carol.Reply(421); got != "Ce compte d’utilisateur a expiré. Veuillez contacter l’administrateur." {
			t.Errorf("reply to carol: got %q", got)
		}
		dave.Command(200, "NOOP")
	})
	text := must.ReadFile(t, cfg.Audit.File)
	for _, want := range []string{`"limit":"user.disabled"`, `"limit":"user.expired"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the audit log lacks %s:\n%s", want, text)
		}
	}
}
