package account

import (
	"bytes"
	"cmp"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// Hashes of password: yescrypt is from `mkpasswd -m yescrypt -R 1`, and the long one from crypt(3).
const (
	yescrypt   = "$y$j75$vQvDWKGBFKhupftlx/C791$R9nnQMM6G1Ilh0suP/nz5Q4g/UC6Fz.RX0zhnJ41Wr9"
	longBcrypt = "$2a$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i" // of 80 times x
)

// After a login, a hash that is not argon2id is replaced in the users_file: in the background, if the file may be
// written and still has the hash.
func TestRehash(t *testing.T) {
	const other = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e" // set by an administrator
	no := false
	for _, tc := range []struct {
		name, hash string
		password   string                          // default: the right one
		settings   func(*config.User)              // of the user
		tenant     func(*config.Tenant)            // of the tenant
		meanwhile  func(t *testing.T, file string) // before the hash is written
		refused    bool                            // the login fails
		want       string                          // in users.yaml: argon2id, or the text of the hash
		log        string                          // part of the log
	}{
		{name: "yescrypt", hash: yescrypt, want: "argon2id", log: `msg="rehashed a password with argon2id" tenant=acme file=`},
		{name: "bcrypt", hash: bcrypt, want: "argon2id"},
		{name: "sha-512", hash: sha512, want: "argon2id"},
		{name: "argon2id", hash: servicetest.PasswordHash().Reveal(), want: servicetest.PasswordHash().Reveal()},
		{name: "wrong-password", hash: yescrypt, password: "wrong", refused: true, want: yescrypt},
		{name: "longer-than-bcrypt-reads", hash: longBcrypt, password: strings.Repeat("x", 79) + "y", want: longBcrypt},
		{name: "disabled", hash: yescrypt, settings: func(u *config.User) { u.Disabled = true }, refused: true, want: yescrypt},
		{name: "opted-out", hash: yescrypt, tenant: func(t *config.Tenant) { t.RehashPasswords = &no }, want: yescrypt},
		{name: "not-in-the-file", hash: yescrypt, meanwhile: func(t *testing.T, file string) {
			must.WriteFile(t, file, "users: {}\n")
		}, want: "-"},
		{name: "changed-meanwhile", hash: yescrypt, meanwhile: func(t *testing.T, file string) {
			must.OK(t, usersfile.Edit(file, func(d *usersfile.Document) error {
				return d.Set("alice", other, "password_hash")
			}, func(string, []byte) error { return nil }))
		}, want: other},
		{name: "removed-meanwhile", hash: yescrypt, meanwhile: func(t *testing.T, file string) {
			must.WriteFile(t, file, "users: {bob: {disabled: true}}\n")
		}, want: "-"},
		{name: "broken-meanwhile", hash: yescrypt, meanwhile: func(t *testing.T, file string) {
			must.WriteFile(t, file, "users: {alice: {password_hash: \""+yescrypt+"\"}\n")
		}, want: "invalid", log: `msg="rehashing passwords failed; the next login tries again" tenant=acme err=`},
		{name: "no-file-anymore", hash: yescrypt, meanwhile: func(t *testing.T, file string) {
			must.OK(t, os.Remove(file))
		}, want: "missing"},
		{name: "volume-of-kubernetes", hash: yescrypt, meanwhile: func(t *testing.T, file string) {
			data := filepath.Join(filepath.Dir(file), "..2026_11_29")
			must.OK(t, os.Mkdir(data, 0o700))
			must.OK(t, os.Rename(file, filepath.Join(data, "users.yaml")))
			must.OK(t, os.Symlink("..2026_11_29", filepath.Join(filepath.Dir(file), "..data")))
			must.OK(t, os.Symlink("..data/users.yaml", file))
		}, want: yescrypt, log: "it is reached by a symbolic link"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "users.yaml")
			must.WriteFile(t, file, "# ours\nusers:\n  alice: {password_hash: \""+tc.hash+"\", root: /a} # hers\n")
			synctest.Test(t, func(t *testing.T) {
				user := &config.User{PasswordHash: value.NewSecret(tc.hash)}
				tenant := &config.Tenant{Bucket: "acme-data", UsersFile: file, Users: map[string]*config.User{"alice": user}}
				if tc.settings != nil {
					tc.settings(user)
				}
				if tc.tenant != nil {
					tc.tenant(tenant)
				}
				cfg := config.Default()
				cfg.Tenants = map[string]*config.Tenant{"acme": tenant}
				r := registryOf(t, cfg)
				var log bytes.Buffer
				r.rehasher = newRehasher(slog.New(slog.NewTextHandler(&log, nil)))
				_, err := login(r, "", "alice", cmp.Or(tc.password, password))
				if (err != nil) != tc.refused {
					t.Fatal(err)
				}
				if text := must.ReadFile(t, file); !strings.Contains(text, tc.hash) {
					t.Fatalf("the login has waited for the file: %s", text)
				}
				if tc.meanwhile != nil {
					tc.meanwhile(t, file)
				}
				time.Sleep(2 * rehashInterval)
				synctest.Wait()
				if got := hashIn(t, file, cmp.Or(tc.password, password)); got != tc.want {
					t.Errorf("the file has the hash %s, want %s", got, tc.want)
				}
				if !strings.Contains(log.String(), tc.log) || tc.log == "" && tc.want != "argon2id" && log.Len() > 0 {
					t.Errorf("the log is %q, want %q", &log, tc.log)
				}
				if strings.Contains(log.String(), "$y$") || strings.Contains(log.String(), password) {
					t.Errorf("the log has a secret: %s", &log)
				}
			})
		})
	}
}

// hashIn returns "argon2id" if alice has a hash of this kind that matches the password, "-" if she has no hash, and
// else the hash.
func hashIn(t *testing.T, file, password string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		return "missing"
	}
	d, err := usersfile.Parse(text)
	if err != nil {
		return "invalid"
	}
	hash := d.Get("alice", "password_hash")
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,") || hash == servicetest.PasswordHash().Reveal() {
		return cmp.Or(hash, "-")
	}
	want := "# ours\nusers:\n  alice: {password_hash: \"" + hash + "\", root: /a} # hers\n"
	right, err := new(passwordhash.Set).Matches(hash, password)
	if err != nil || !right || string(text) != want {
		t.Errorf("%v, %v:\n%s\nwant\n%s", right, err, text, want)
	}
	return "argon2id"
}

// Close writes the hashes that wait, so that the end of the process loses none. Logins after it do not rehash.
func TestRehashAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	must.WriteFile(t, filepath.Join(dir, "a.yaml"), "users: {bob: {disabled: true}}\n")
	must.WriteFile(t, filepath.Join(dir, "b.yaml"), "users: {alice: {password_hash: \""+yescrypt+"\"}}\n")
	cfg := config.Default()
	cfg.Tenants = map[string]*config.Tenant{"acme": {
		Bucket: "acme-data", UsersFile: dir, Users: map[string]*config.User{
			"alice": {PasswordHash: value.NewSecret(yescrypt)}, "bob": {Disabled: true},
		},
	}}
	r := registryOf(t, cfg)
	if _, err := login(r, "", "alice", password); err != nil {
		t.Fatal(err)
	}
	r.Close()
	d, err := usersfile.Read(filepath.Join(dir, "b.yaml"))
	must.OK(t, err)
	if hash := d.Get("alice", "password_hash"); !strings.HasPrefix(hash, "$argon2id$") {
		t.Errorf("the hash is %s", hash)
	}
	r.current.Load().users["alice"].state.password.Store(nil)
	if _, err := login(r, "", "alice", password); err != nil {
		t.Fatal(err)
	}
	r.Close()
}
