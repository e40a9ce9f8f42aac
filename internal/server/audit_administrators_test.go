package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// linesOf returns the lines of an audit log that have a key, without the values that differ in each run.
func linesOf(t *testing.T, file, key string) (lines []string) {
	t.Helper()
	text := must.ReadFile(t, file)
	for line := range strings.Lines(text) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if fields[key] == nil {
			continue
		}
		for _, changing := range []string{"time", "until", "config_hash"} {
			delete(fields, changing)
		}
		pairs := []string{}
		for name, value := range fields {
			pairs = append(pairs, fmt.Sprint(name, "=", value))
		}
		slices.Sort(pairs)
		lines = append(lines, strings.Join(pairs, " "))
	}
	return lines
}

// Each action of an administrator through the socket and each reload is a line in the audit log, even if it fails. It
// names the user of the client process.
func TestAuditOfAdministrators(t *testing.T) {
	cfg, s, administrator := bansBehind(t)
	cfg.Audit.File = filepath.Join(t.TempDir(), "audit.log")
	self, err := user.Current()
	must.OK(t, err)
	var id string
	t.Run("serve", func(t *testing.T) { // the last lines are written at the end
		srv := start(t, cfg, Options{AWS: s.AWSConfig()})
		c := ftptest.Dial(t, srv.Addr().String())
		c.Login("alice", servicetest.Password)
		all, err := administrator.Sessions(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("unexpected sessions %v: %v", all, err)
		}
		id = all[0].ID
		if err := administrator.Disconnect(t.Context(), id); err != nil {
			t.Error(err)
		}
		if err := administrator.Disconnect(t.Context(), "none"); err == nil {
			t.Error("disconnected an unknown session")
		}
		if _, err := administrator.Ban(t.Context(), "alice@acme", 0); err != nil {
			t.Error(err)
		}
		if _, err := administrator.Unban(t.Context(), "alice@acme"); err != nil {
			t.Error(err)
		}
		if err := administrator.Abort(t.Context(), "acme", "0123"); err == nil {
			t.Error("removed an unknown upload")
		}
		if _, err := administrator.DebugOff(t.Context()); err != nil {
			t.Error(err)
		}
		next := *cfg
		acme := *cfg.Tenants["acme"]
		acme.Users = maps.Clone(acme.Users)
		acme.Users["alice"] = &config.User{PasswordHash: acme.Users["alice"].PasswordHash, Disabled: true}
		acme.Users["new"] = &config.User{Disabled: true}
		next.Tenants = map[string]*config.Tenant{"acme": &acme}
		reload(t, srv, &next)
		broken := errors.New("broken")
		if err := srv.Reload(ReloadSignal, func() (*config.Config, error) { return nil, broken }); err == nil {
			t.Error("loaded an unreadable configuration")
		}
	})
	by := "administrator=" + self.Username + " "
	want := []string{
		by + "client=admin_socket event=disconnect outcome=ok session=" + id + " tenant=acme user=alice",
		by + "client=admin_socket error=session none not found: it may have ended " +
			"event=disconnect outcome=failed session=none",
		by + "banned=alice@acme client=admin_socket event=ban outcome=ok",
		by + "banned=alice@acme client=admin_socket event=unban outcome=ok",
		by + "client=admin_socket error=tenant acme: upload 0123 not found: it may be complete, or removed " +
			"event=abort_upload outcome=failed tenant=acme upload=0123",
		by + "client=admin_socket event=debug_off outcome=ok",
		"administrator=changed files client=server event=reload outcome=ok users_added=[new@acme] users_changed=[alice@acme]",
		"administrator=SIGHUP client=server error=broken event=reload outcome=failed",
	}
	got := linesOf(t, cfg.Audit.File, "administrator")
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Logins at admin.listen, including failed ones, and bans after failures are lines in the audit log. Unknown names are
// never logged.
func TestAuditOfAdministratorLogins(t *testing.T) {
	t.Parallel()
	cfg, s, _ := bansBehind(t)
	cfg.Audit.File = filepath.Join(t.TempDir(), "audit.log")
	cfg.Admin.Listen, cfg.Admin.Users = "127.0.0.1:0", adminUsers(t)
	cfg.Limits.Bans.UserScore = 1
	t.Run("serve", func(t *testing.T) { // the last lines are written at the end
		srv := start(t, cfg, Options{AWS: s.AWSConfig()})
		c := ftptest.Dial(t, srv.Addr().String())
		c.Command(331, "USER alice")
		c.Command(530, "PASS guess")
		for _, form := range []url.Values{
			{"user": {adminName}, "password": {"guess"}}, {"user": {adminPassword}, "password": {adminName}},
			{"user": {adminName}, "password": {adminPassword}},
		} {
			answer, err := http.PostForm("http://"+srv.AdminAddr().String()+"/login", form)
			must.OK(t, err)
			_ = answer.Body.Close()
		}
	})
	want := []string{
		"administrator=failed logins banned=alice@acme client=server event=ban outcome=ok",
		"administrator=ann event=admin_login outcome=failed reason=wrong_password",
		"event=admin_login outcome=failed reason=unknown_user",
		"administrator=ann event=admin_login login=password outcome=ok role=administrator",
	}
	got := linesOf(t, cfg.Audit.File, "event")
	for i, line := range got {
		got[i] = clientPort.ReplaceAllString(line, "")
	}
	got = slices.DeleteFunc(got, func(line string) bool { return strings.Contains(line, "event=login") })
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

var clientPort = regexp.MustCompile(`client=127\.0\.0\.1:\d+ `)

// With audit.required, a full disk makes the server refuse logins, transfers, changes and actions of administrators,
// until lines can be written again. No line is lost.
func TestAuditRequired(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	cfg, s, administrator := bansBehind(t)
	cfg.DefaultLanguage = language.French
	cfg.Audit.File, cfg.Audit.Required = filepath.Join(t.TempDir(), "audit.log"), true
	log := &servicetest.Log{}
	t.Run("serve", func(t *testing.T) { // the last lines are written at the end
		srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: log.Logger()})
		c := ftptest.Dial(t, srv.Addr().String())
		c.Login("alice", servicetest.Password)
		c.Store("before", "abc")
		must.OK(t, os.Rename(cfg.Audit.File, cfg.Audit.File+".1"))
		must.OK(t, os.Symlink("/dev/full", cfg.Audit.File))
		c.Command(257, "MKD last") // its line is the first one that does not fit on the disk
		for !srv.audit.Refuses(report.Owner{}) {
			runtime.Gosched()
		}
		const refusal = "Impossible d’écrire dans le journal d’audit pour le moment."
		for _, command := range []string{"DELE before", "MKD d", "RNFR before", "SITE RMDIR last", "RETR before"} {
			if got := c.Command(451, command); !strings.Contains(got, refusal) {
				t.Errorf("%s: %s", command, got)
			}
		}
		c.Command(250, "CWD last") // CWD writes no audit line
		second := ftptest.Dial(t, srv.Addr().String())
		if got := second.Command(421, "USER alice"); !strings.Contains(got, refusal) {
			t.Errorf("USER: %s", got)
		}
		second.WantClosed()
		if _, err := administrator.Ban(t.Context(), "bob@acme", 0); err == nil ||
			!strings.Contains(err.Error(), "audit.required") {
			t.Errorf("the ban was not refused: %v", err)
		}
		must.OK(t, os.Remove(cfg.Audit.File))
		for srv.audit.Refuses(report.Owner{}) {
			runtime.Gosched()
		}
		c.Command(250, "DELE /alice/before")
		if _, err := administrator.Ban(t.Context(), "bob@acme", 0); err != nil {
			t.Error(err)
		}
	})
	for key, want := range map[string]int{"command": 1 + 1 + 5 + 1, "banned": 1} {
		got := append(linesOf(t, cfg.Audit.File+".1", key), linesOf(t, cfg.Audit.File, key)...)
		if len(got) != want {
			t.Errorf("got %d lines with %s, want %d:\n%s", len(got), key, want, strings.Join(got, "\n"))
		}
	}
	for _, want := range []string{"refusing commands until it works", "destination works again"} {
		if log.Count(want) != 1 {
			t.Errorf("the log contains %q %d times", want, log.Count(want))
		}
	}
}
