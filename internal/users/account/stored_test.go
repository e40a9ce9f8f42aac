package account

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
	"github.com/babelftp/babelftp/internal/users/bans"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// storing lets a tenant keep its users in the shared state of a new bucket.
func storing(t *testing.T, r *Registry, tenant string) *usersfile.Store {
	s := s3test.Start(t, "sim-aws")
	r.ShareUsers(sharingLogins(t, s, s.Bucket(t)).store)
	of := r.current.Load().tenants[tenant]
	of.store = r.newStore(tenant, of.Tenant)
	return of.store
}

// A user of an old server is stored in the shared state, and the login does not wait for it.
func TestMoveToState(t *testing.T) {
	source := &fakeSource{settings: config.User{Root: "/bob"}}
	r := withSources(t, map[string]*config.Tenant{"acme": {
		Bucket: "acme-data", UsersStore: config.StateStore, Auth: config.Auth{FTP: config.OldServer{Address: "old.example:21"}},
	}}, source, "acme")
	store := storing(t, r, "acme")
	l, err := login(r, "", "bob@acme", password)
	must.OK(t, err)
	if l.MovedFrom != "old.example:21" {
		t.Errorf("MovedFrom = %q", l.MovedFrom)
	}
	deadline := time.After(20 * time.Second)
	for {
		d, place, err := store.Read(t.Context(), "bob")
		if err == nil {
			if place.Kind != usersfile.InState || d.MovedFrom("bob") != "old.example:21" || d.Get("bob", "root") != "/bob" {
				text, _ := d.Text()
				t.Errorf("stored in %s:\n%s", place, text)
			}
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatal(err)
		}
	}
}

// Hashes and passwords of users in the shared state are replaced there.
func TestPasswordsInState(t *testing.T) {
	cfg := config.Default()
	cfg.Tenants = map[string]*config.Tenant{"acme": {
		Bucket: "acme-data", UsersStore: config.StateStore, Users: map[string]*config.User{
			"alice": {
				PasswordHash: value.NewSecret(yescrypt), Permissions: []config.Permission{config.Password},
				MustChangePassword: true,
			},
		},
	}}
	r := registryOf(t, cfg)
	store := storing(t, r, "acme")
	must.OK(t, store.Edit(t.Context(), "alice", func(d *usersfile.Document) error {
		d.Add("alice")
		return errors.Join(d.Set("alice", yescrypt, "password_hash"), d.Set("alice", true, "must_change_password"),
			d.Set("alice", []config.Permission{config.Password}, "permissions"))
	}))
	l, err := login(r, "", "alice", password)
	must.OK(t, err)
	if !l.MustChangePassword() {
		t.Error("the password need not be changed")
	}
	r.Close() // writes the hash
	read := func() (hash, must string) {
		d, _, err := store.Read(t.Context(), "alice")
		if err != nil {
			t.Error(err)
			return "", ""
		}
		return d.Get("alice", "password_hash"), d.Get("alice", "must_change_password")
	}
	hash, mustChange := read()
	if !strings.HasPrefix(hash, "$argon2id$") || mustChange != "true" {
		t.Errorf("after the login, the hash is %s, and must_change_password is %q", hash, mustChange)
	}
	r.current.Load().users["alice"].PasswordHash = value.NewSecret(hash) // as after a reload
	r.current.Load().users["alice"].state.password.Store(nil)
	before := r.current.Load()
	go func() { // a reload after the change
		for range time.Tick(time.Millisecond) {
			if now, _ := read(); now != hash {
				break
			}
		}
		next := *before
		next.tenants = map[string]*Tenant{}
		r.current.Store(&next)
		close(before.tenants["acme"].replaced)
	}()
	must.OK(t, changePassword(r, l, password, newPassword))
	if next, mustChange := read(); next == hash || mustChange != "" || l.MustChangePassword() {
		t.Errorf("after the change, the hash is %s, and must_change_password is %q", next, mustChange)
	}
}

// As long as the users in the shared state are unknown, a login is neither decided nor counted.
func TestUnknownUsers(t *testing.T) {
	cfg := config.Default()
	cfg.Tenants = map[string]*config.Tenant{
		"acme": {Bucket: "acme-data", UsersStore: config.StateStore, UsersUnknown: true, Users: map[string]*config.User{
			"known": {PasswordHash: servicetest.PasswordHash()},
		}},
		"umbrella": {Bucket: "umbrella-data", Users: map[string]*config.User{"carol": {PasswordHash: servicetest.PasswordHash()}}},
	}
	r := registryOf(t, cfg)
	rules := config.Bans{AddressScore: 4, UserScore: 4, Time: time.Hour, HalfLife: time.Hour}
	r.bans = bans.New(rules, config.Networks{}, slog.New(slog.DiscardHandler), func(bans.Ban) {})
	for range 10 {
		for _, name := range []string{"alice@acme", "alice"} {
			_, err := login(r, "", name, "wrong")
			if _, ok := errors.AsType[*UnavailableError](err); !ok || errors.Is(err, ErrLoginRefused) {
				t.Fatalf("%s: got error %v", name, err)
			}
		}
	}
	for _, name := range []string{"known@acme", "known", "carol@umbrella", "carol"} {
		if _, err := login(r, "", name, password); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := login(r, "", "alice@umbrella", "wrong"); !errors.Is(err, ErrLoginRefused) {
		t.Errorf("an unknown user of another tenant: got error %v", err)
	}
}
