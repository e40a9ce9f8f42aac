package account

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
	"github.com/babelftp/babelftp/internal/users/bans"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

func TestNewPasswords(t *testing.T) {
	for _, test := range []struct {
		name, password string
		want           error
	}{
		{"words", "correct horse battery", nil},
		{"random", "k7Qz-p2Lw-9Vxa", nil},
		{"random-letters", "xqzvkwjplmtr", nil},
		{"digits", "839201746512", nil},
		{"another-script", "пароль на завтра", nil},
		{"user-name-and-more", "alice reads ulysses", nil},
		{"characters-not-bytes", "ééééééabcxy", ErrPasswordTooShort},
		{"composed-characters", "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301", ErrPasswordTooShort},
		{"eleven", "k7Qz-p2Lw-9", ErrPasswordTooShort},
		{"empty", "", ErrPasswordTooShort},
		{"the-same", "the old password", ErrPasswordTooWeak},
		{"common", "1qaz2wsx3edc", ErrPasswordTooWeak},
		{"common-in-capitals", "LeaveMeAlone", ErrPasswordTooWeak},
		{"common-with-digits", "Password2026!!", ErrPasswordTooWeak},
		{"common-with-digits-before", "2026-2027 Dragon", ErrPasswordTooWeak},
		{"user-name", "Alice-123456", ErrPasswordTooWeak},
		{"user-name-twice", "alicealice123", ErrPasswordTooWeak},
		{"one-character", "xxxxxxxxxxxx", ErrPasswordTooWeak},
		{"few-characters", "xyxxyyxyxxyz", ErrPasswordTooWeak},
		{"repeated", "kw7zq4kw7zq4", ErrPasswordTooWeak},
		{"count", "123456789012", ErrPasswordTooWeak},
		{"count-down", "zyxwvutsrqpo", ErrPasswordTooWeak},
		{"alphabet-with-a-sign", "abcdefghijkl!", ErrPasswordTooWeak},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := checkNewPassword("Alice", "the old password", test.password); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// newPassword passes the rules.
const newPassword = "correct horse battery"

// changePassword changes the password of alice@acme.
func changePassword(r *Registry, l *Login, current, next string) error {
	return r.ChangePassword(context.Background(), l, &LoginRequest{
		User: l.Name, Password: current, RemoteAddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)},
	}, next)
}

// The hash of the new password is written to the file of the user, if the server may do so.
func TestChangePassword(t *testing.T) {
	for _, tc := range []struct {
		name      string
		current   string // default: the right one
		next      string // default: newPassword
		settings  func(*config.User)
		tenant    func(*config.Tenant)
		meanwhile func(t *testing.T, file string) // after the login
		want      error
		reason    string // part of the error
	}{
		{name: "right"},
		{name: "permission-of-the-tenant", settings: func(u *config.User) { u.Permissions = nil }, tenant: func(t *config.Tenant) {
			t.Permissions = []config.Permission{config.Read, config.Password}
		}},
		{name: "wrong", current: "wrong", want: ErrLoginRefused},
		{name: "short", next: "short", want: ErrPasswordTooShort},
		{name: "weak", next: "password1234", want: ErrPasswordTooWeak},
		{name: "no-permissions", settings: func(u *config.User) { u.Permissions = nil }, want: fs.ErrPermission},
		{name: "other-permissions", settings: func(u *config.User) { u.Permissions = []config.Permission{config.Read} },
			want: fs.ErrPermission},
		{name: "not-of-the-tenant", tenant: func(t *config.Tenant) { t.Permissions = config.FilePermissions() },
			want: fs.ErrPermission},
		{name: "no-users-file", tenant: func(t *config.Tenant) { t.UsersFile = "" }, want: ErrPasswordFixed,
			reason: "the tenant has neither users_store nor users_file"},
		{name: "main-configuration", meanwhile: func(t *testing.T, file string) {
			must.WriteFile(t, file, "users: {bob: {disabled: true}}\n")
		}, want: ErrPasswordFixed, reason: "the user is in users, not in users_file or users_store"},
		{name: "password-hash-file", meanwhile: func(t *testing.T, file string) {
			must.WriteFile(t, file, "users: {alice: {password_hash_file: /run/alice}}\n")
		}, want: ErrPasswordFixed, reason: "in password_hash_file"},
		{name: "symbolic-link", meanwhile: func(t *testing.T, file string) {
			must.OK(t, os.Rename(file, file+".real"))
			must.OK(t, os.Symlink(file+".real", file))
		}, want: ErrPasswordFixed, reason: "symbolic link"},
		{name: "changed-by-an-administrator", meanwhile: func(t *testing.T, file string) {
			must.OK(t, usersfile.Edit(file, func(d *usersfile.Document) error {
				return d.Set("alice", bcrypt, "password_hash")
			}, func(string, []byte) error { return nil }))
		}, want: ErrPasswordNotStored, reason: "was changed at the same time"},
		{name: "broken-file", meanwhile: func(t *testing.T, file string) {
			must.WriteFile(t, file, "users: {alice: {\n")
		}, want: ErrPasswordNotStored},
		{name: "no-file", meanwhile: func(t *testing.T, file string) { must.OK(t, os.Remove(file)) }, want: ErrPasswordFixed},
		{name: "shared-hash", meanwhile: func(t *testing.T, file string) {
			must.WriteFile(t, file, "users:\n  alice: {password_hash: &a \""+sha512+"\"}\n  bob: {password_hash: *a}\n")
		}, want: ErrPasswordNotStored, reason: "shared by a YAML anchor"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "users.yaml")
			must.WriteFile(t, file, "# ours\nusers:\n  alice: {password_hash: \""+sha512+"\", root: /a} # hers\n")
			synctest.Test(t, func(t *testing.T) {
				user := &config.User{
					PasswordHash: value.NewSecret(sha512), Permissions: []config.Permission{config.Password},
				}
				tenant := &config.Tenant{Bucket: "acme-data", UsersFile: file, Users: map[string]*config.User{"alice": user}}
				no := false
				tenant.RehashPasswords = &no
				if tc.settings != nil {
					tc.settings(user)
				}
				if tc.tenant != nil {
					tc.tenant(tenant)
				}
				cfg := config.Default()
				cfg.Tenants = map[string]*config.Tenant{"acme": tenant}
				r := registryOf(t, cfg)
				l, err := login(r, "", "alice", password)
				must.OK(t, err)
				if tc.meanwhile != nil {
					tc.meanwhile(t, file)
				}
				before, _ := os.ReadFile(file)
				err = changePassword(r, l, cmp.Or(tc.current, password), cmp.Or(tc.next, newPassword))
				if !errors.Is(err, tc.want) || err != nil && !strings.Contains(err.Error(), tc.reason) {
					t.Fatalf("got error %v, want %v: %s", err, tc.want, tc.reason)
				}
				after, _ := os.ReadFile(file)
				if err != nil && !bytes.Equal(before, after) {
					t.Errorf("the file changed to\n%s", after)
				}
				if err == nil && (hashIn(t, file, newPassword) != "argon2id" || !bytes.HasSuffix(after, []byte("\", root: /a} # hers\n"))) {
					t.Errorf("the file is\n%s", after)
				}
			})
		})
	}
}

// Users of a service change the password there, and users who were removed or whose name now means another user cannot
// change one.
func TestChangePasswordOfOthers(t *testing.T) {
	granted := []config.Permission{config.Password}
	source := &fakeSource{tenant: "acme"}
	tenants := served()
	for _, tenant := range tenants {
		tenant.Permissions = granted
	}
	r := serving(withSources(t, tenants, source, "own"), source)
	bob, err := login(r, "", "bob", password)
	must.OK(t, err)
	if err := changePassword(r, bob, password, newPassword); !errors.Is(err, ErrPasswordElsewhere) {
		t.Errorf("a user of a service: got error %v", err)
	}
	erin, err := login(r, "", "erin", password)
	must.OK(t, err)
	erin.User = &User{Name: "erin", Tenant: bob.Tenant, User: &config.User{}}
	if err := changePassword(r, erin, password, newPassword); !errors.Is(err, ErrPasswordFixed) {
		t.Errorf("the user of another tenant: got error %v", err)
	}
	erin.Name = "dora"
	r = registryOf(t, config.Default())
	if err := changePassword(r, erin, password, newPassword); !errors.Is(err, ErrPasswordFixed) {
		t.Errorf("a removed user: got error %v", err)
	}
	cfg := config.Default()
	cfg.Tenants = map[string]*config.Tenant{"acme": {Bucket: "acme-data", Permissions: granted,
		Users: map[string]*config.User{"cert": {}}}}
	r = registryOf(t, cfg)
	cert := &Login{User: r.current.Load().users["cert"]}
	err = changePassword(r, cert, password, newPassword)
	if !errors.Is(err, ErrPasswordFixed) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a user without a password: got error %v", err)
	}
}

// A wrong current password counts for bans and rates like a wrong password of a login.
func TestWrongPasswordsOfChangePasswordCount(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users.yaml")
	must.WriteFile(t, file, "users: {alice: {password_hash: \""+servicetest.PasswordHash().Reveal()+"\"}}\n")
	synctest.Test(t, func(t *testing.T) {
		cfg := config.Default()
		cfg.Tenants = map[string]*config.Tenant{"acme": {Bucket: "acme-data", UsersFile: file, Users: map[string]*config.User{
			"alice": {PasswordHash: servicetest.PasswordHash(), Permissions: []config.Permission{config.Password}},
		}}}
		r := registryOf(t, cfg)
		log := slog.New(slog.DiscardHandler)
		rules := config.Bans{UserScore: 3, Time: time.Hour, HalfLife: time.Hour}
		r.bans = bans.New(rules, config.Networks{}, log, func(bans.Ban) {})
		l, err := login(r, "", "alice", password)
		must.OK(t, err)
		for range 3 {
			if err := changePassword(r, l, "wrong", newPassword); !errors.Is(err, ErrLoginRefused) {
				t.Fatalf("got error %v", err)
			}
		}
		for _, err := range []error{changePassword(r, l, password, newPassword), func() error {
			_, err := login(r, "", "alice", password)
			return err
		}()} {
			if reached, ok := errors.AsType[*limits.Error](err); !ok || reached.Limit != limits.Bans {
				t.Errorf("got error %v, want a ban", err)
			}
		}
	})
}

// ChangePassword returns when the server has read the file, or after a while with a line in the log.
func TestChangePasswordWaitsForTheReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users.yaml")
	must.WriteFile(t, file, "users: {alice: {password_hash: \""+servicetest.PasswordHash().Reveal()+"\"}}\n")
	synctest.Test(t, func(t *testing.T) {
		tenantWith := func(hash value.Secret) *config.Config {
			cfg := config.Default()
			cfg.Tenants = map[string]*config.Tenant{"acme": {Bucket: "acme-data", UsersFile: file, Users: map[string]*config.User{
				"alice": {PasswordHash: hash, Permissions: []config.Permission{config.Password}},
			}}}
			return cfg
		}
		r := registryOf(t, tenantWith(servicetest.PasswordHash()))
		var log bytes.Buffer
		r.log = slog.New(slog.NewTextHandler(&log, nil))
		l, err := login(r, "", "alice", password)
		must.OK(t, err)
		apply := func(cfg *config.Config) {
			bundle, err := cfg.Bundle()
			must.OK(t, err)
			buckets := map[string]*s3client.Bucket{"acme": {}}
			withEndpoint(buckets)
			c, err := r.Prepare(cfg, bundle, buckets, nil, driver.Options{})
			must.OK(t, err)
			c.Apply()
		}
		go func() {
			time.Sleep(time.Second)
			apply(tenantWith(servicetest.PasswordHash())) // another change, which was read before
			time.Sleep(time.Second)
			d, err := usersfile.Read(file)
			must.OK(t, err)
			apply(tenantWith(value.NewSecret(d.Get("alice", "password_hash"))))
		}()
		began := time.Now()
		must.OK(t, changePassword(r, l, password, newPassword))
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("the change took %v", took)
		}
		if _, err := login(r, "", "alice", newPassword); err != nil {
			t.Error(err)
		}
		if _, err := login(r, "", "alice", password); !errors.Is(err, ErrLoginRefused) {
			t.Errorf("the old password gives %v", err)
		}
		began = time.Now()
		must.OK(t, changePassword(r, l, newPassword, "another horse battery"))
		took := time.Since(began)
		if took < maxReloadWait || !strings.Contains(log.String(), "new password not in use yet") {
			t.Errorf("the change took %v, and the log is %s", took, &log)
		}
	})
}
