package server

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A directory decides on users who are not in the configuration. Wrong passwords count for bans. A directory that
// is down decides nothing.
func TestDirectory(t *testing.T) {
	directory := servicetest.StartDirectory(t)
	s := s3test.Start(t, "sim-aws")
	cfg := configtest.New(t, s)
	cfg.Limits.FailedLoginDelay = 0
	cfg.Limits.Bans = config.Bans{UserScore: 2, Time: time.Hour, HalfLife: time.Hour}
	cfg.Tenants["acme"].Auth = config.Auth{
		User: config.User{Root: "/{user}"},
		LDAP: config.LDAP{
			URLs: []string{directory.LDAP}, CAFile: directory.CAFile, BaseDN: servicetest.BaseDN,
			BindDN: servicetest.BindDN, BindPassword: value.NewSecret(servicetest.DirectoryPassword),
			Attributes: config.Attributes{Root: "ftpRoot", Home: "ftpHome", Quota: "ftpQuota",
				Permissions: "ftpPermission"},
		},
	}
	put(t, s, cfg, "bob/before", "teams/alice/before", "private") // 7 bytes each
	log := make(logged, 1000)
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: slog.New(slog.NewTextHandler(log, nil))})
	for _, step := range []struct {
		name, user, password string
		code                 int
	}{
		{"right", "bob@acme", servicetest.DirectoryPassword, 230},
		{"wrong", "bob", "wrong-horse", 530},
		{"empty", "bob", "", 530},
		{"banned", "bob", servicetest.DirectoryPassword, 421},
		{"unknown", "nobody", servicetest.DirectoryPassword, 530},
		{"filter", "*)(uid=*", servicetest.DirectoryPassword, 530},
		{"star", "*", servicetest.DirectoryPassword, 230},
		{"not-below-its-root", "..", servicetest.DirectoryPassword, 530},
		{"settings-not-valid", "carol", servicetest.DirectoryPassword, 421},
		{"configured", "alice", servicetest.DirectoryPassword, 230}, // the directory has her too
	} {
		c := ftptest.Dial(t, srv.Addr().String())
		c.Command(331, "USER "+step.user)
		t.Log(step.name)
		c.Command(step.code, "PASS "+step.password)
	}
	delete(cfg.Tenants["acme"].Users, "alice")
	srv = start(t, cfg, Options{AWS: s.AWSConfig(), Logger: slog.New(slog.NewTextHandler(log, nil))})
	alice := ftptest.Dial(t, srv.Addr().String())
	alice.Login("alice", servicetest.DirectoryPassword)
	if got := alice.Command(257, "PWD"); !strings.HasPrefix(got, `"/in"`) {
		t.Errorf("PWD: %s", got)
	}
	alice.Command(250, "CWD /")
	if got := alice.Transfer("NLST"); got != "before\r\n" {
		t.Errorf("the root lists %q", got)
	}
	alice.Command(550, "DELE before")
	count(t, srv)
	if got := alice.Command(200, "SITE QUOTA"); got != "Space used: 7 B / 20 B" {
		t.Errorf("SITE QUOTA: %q", got)
	}

	directory.Stop()
	c := ftptest.Dial(t, srv.Addr().String())
	c.Command(331, "USER alice")
	c.Command(421, "PASS "+servicetest.DirectoryPassword)

	down := false
	for len(log) > 0 {
		line := <-log
		if strings.Contains(line, "horse") || strings.Contains(line, "nobody") || strings.Contains(line, "uid=") {
			t.Errorf("the log has a password or an unknown name: %s", line)
		}
		down = down || strings.Contains(line, "level=ERROR") && strings.Contains(line, "directory: "+directory.LDAP)
	}
	if !down {
		t.Error("the log does not say that the directory is down")
	}
}
