package account

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// change applies another configuration with these buckets.
func change(t *testing.T, r *Registry, cfg *config.Config, buckets map[string]*s3client.Bucket) {
	t.Helper()
	withEndpoint(buckets)
	c, err := r.Prepare(cfg, r.current.Load().settings.bundle, buckets, nil, driver.Options{})
	must.OK(t, err)
	c.Apply()
}

// twoTenants returns a configuration with alice in acme and bob in umbrella, and a copy of it with a changed acme.
func twoTenants(t *testing.T) (cfg, next *config.Config, buckets map[string]*s3client.Bucket) {
	t.Helper()
	cfg = config.Default()
	cfg.Tenants = map[string]*config.Tenant{
		"acme": {Bucket: "acme-data", Quota: 1000,
			Users: map[string]*config.User{"alice": {PasswordHash: servicetest.PasswordHash(), Quota: 100}}},
		"umbrella": {Bucket: "umbrella-data",
			Users: map[string]*config.User{"bob": {PasswordHash: servicetest.PasswordHash()}}},
	}
	changed, copied := *cfg.Tenants["acme"], *cfg
	changed.Users = maps.Clone(changed.Users)
	next = &copied
	next.Tenants = maps.Clone(cfg.Tenants)
	next.Tenants["acme"] = &changed
	return cfg, next, map[string]*s3client.Bucket{"acme": {Tenant: "acme"}, "umbrella": {Tenant: "umbrella"}}
}

// An unchanged tenant is kept. If a tenant changes, its users keep their sessions, last login and usage.
func TestChangeKeeps(t *testing.T) {
	cfg, next, buckets := twoTenants(t)
	r := registryWith(t, cfg, buckets)
	before := maps.Clone(r.current.Load().tenants)
	alice := before["acme"].users["alice"]
	release, err := limits.Scopes{before["acme"].state.scope, alice.state.scope}.AcquireSession()
	must.OK(t, err)
	r.lastLogins.record(alice.stateKey(), time.Unix(1, 0))
	isRight := func(u *User) bool {
		t.Helper()
		right, err := r.verifier.check(t.Context(), netip.Prefix{}, u.credential(), servicetest.Password)
		must.OK(t, err)
		return right
	}
	if !isRight(alice) {
		t.Fatal("the password was refused")
	}
	next.Tenants["acme"].Quota = 2000
	next.Tenants["acme"].Limits.Tenant.Sessions = 1
	next.Tenants["acme"].Users["carol"] = &config.User{PasswordHash: servicetest.PasswordHash(), Quota: 7}
	change(t, r, next, buckets)
	after := r.current.Load().tenants
	if after["umbrella"] != before["umbrella"] || before["umbrella"].isReplaced() || !before["acme"].isReplaced() {
		t.Error("unexpected tenants were replaced")
	}
	now := after["acme"].users["alice"]
	if now == alice || now.state != alice.state {
		t.Errorf("unexpected user %+v", now)
	}
	if _, err := (limits.Scopes{after["acme"].state.scope}).AcquireSession(); err == nil {
		t.Error("the earlier session is not counted")
	}
	release()

	// Change the settings of the server, the password and the bucket.
	all := *next
	all.DefaultLanguage, all.Limits.FailedLoginDelay = language.French, time.Second
	another, err := passwordhash.New("another")
	must.OK(t, err)
	changed := *next.Tenants["acme"]
	changed.Users = map[string]*config.User{"alice": {PasswordHash: value.NewSecret(another), Quota: 100}}
	all.Tenants = map[string]*config.Tenant{"acme": &changed, "umbrella": next.Tenants["umbrella"]}
	change(t, r, &all, map[string]*s3client.Bucket{"acme": {Tenant: "acme", Name: "other"}, "umbrella": buckets["umbrella"]})
	last := r.current.Load().tenants
	if last["umbrella"] == before["umbrella"] || last["umbrella"].DefaultLanguage != language.French {
		t.Error("the language of the server did not reach the tenants")
	}
	if u := last["acme"].users["alice"]; isRight(u) {
		t.Errorf("unexpected user %+v", u)
	}
	if first := r.lastLogins.record(now.stateKey(), time.Unix(2, 0)); first.Unix() != 1 {
		t.Errorf("unexpected time of the previous login: %v", first)
	}
}

// A login that started before a change continues with the new tenant.
func TestLoginWhileTheTenantChanges(t *testing.T) {
	cfg, next, buckets := twoTenants(t)
	r := registryBefore(t, cfg, s3test.Start(t, "sim-aws"))
	for name, tenant := range r.current.Load().tenants {
		buckets[name] = tenant.bucket
	}
	alice := r.current.Load().tenants["acme"].users["alice"]
	change(t, r, next, buckets)
	req := &LoginRequest{User: "alice"}
	if _, err := r.begin(req, alice, limits.Scopes{alice.state.scope}); !errors.Is(err, errReplaced) {
		t.Errorf("unexpected error of the login to the old tenant: %v", err)
	}
	login, err := r.Login(
		t.Context(), &LoginRequest{User: "alice", Password: servicetest.Password,
			RemoteAddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}})
	if err != nil || login.Tenant != r.current.Load().tenants["acme"] {
		t.Errorf("unexpected login %+v, %v", login, err)
	}
}

// A login that waits for a bucket stops waiting when a change replaces the bucket, and counts once for login rates.
func TestLoginWhileTheBucketChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, next, buckets := twoTenants(t)
		r := registryWith(t, cfg, buckets)
		(&s3client.Watcher{}).Watch(s3client.All(buckets)) // and never verify them
		begun := time.Now()
		var login *Login
		var failed error
		go func() {
			server := scopesWithLoginRate(t, 1)
			login, failed = r.Login(t.Context(), &LoginRequest{
				User: "alice", Password: servicetest.Password, RemoteAddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)},
				Limits: server,
			})
		}()
		synctest.Wait()
		if login != nil || failed != nil {
			t.Fatalf("the login did not wait for the bucket: %+v, %v", login, failed)
		}
		good := &s3client.Bucket{Tenant: "acme", Name: "good"}
		change(t, r, next, map[string]*s3client.Bucket{"acme": good, "umbrella": buckets["umbrella"]})
		synctest.Wait()
		if failed != nil || login == nil || login.Tenant != r.current.Load().tenants["acme"] {
			t.Errorf("unexpected login %+v, %v", login, failed)
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("the login waited %v for the old bucket", waited)
		}
	})
}

// scopesWithLoginRate returns the scopes of a session on a server that allows rate logins per second.
func scopesWithLoginRate(t *testing.T, rate int) limits.Scopes {
	t.Helper()
	server := limits.NewServer(limits.Bounds{Work: limits.Work{LoginRate: rate}}, limits.Bounds{})
	scopes, _, err := server.Admit(&limits.Session{Addr: netip.MustParseAddr("192.0.2.1")})
	must.OK(t, err)
	return scopes
}

// Tenants and users who are removed and added again keep the sessions that were counted before.
func TestRemovedAndAddedAgain(t *testing.T) {
	cfg, next, buckets := twoTenants(t)
	next.Tenants["acme"].Users = map[string]*config.User{"carol": {PasswordHash: servicetest.PasswordHash()}}
	none := *cfg
	none.Tenants = map[string]*config.Tenant{"umbrella": cfg.Tenants["umbrella"]}
	for name, between := range map[string][]*config.Config{"tenant": {&none}, "user": {next}, "both": {next, &none},
		"both-in-turn": {&none, next}} {
		t.Run(name, func(t *testing.T) {
			r := registryWith(t, cfg, buckets)
			acme := r.current.Load().tenants["acme"]
			alice := acme.users["alice"]
			release, err := limits.Scopes{acme.state.scope, alice.state.scope}.AcquireSession()
			must.OK(t, err)
			for _, cfg := range between {
				change(t, r, cfg, buckets)
			}
			change(t, r, cfg, buckets)
			now := r.current.Load().tenants["acme"]
			if now == acme || now.state != acme.state || now.users["alice"].state != alice.state {
				t.Errorf("unexpected tenant %+v", now)
			}
			release()
			for _, cfg := range between {
				change(t, r, cfg, buckets)
			}
			if r.states.all[stateKey{"acme", "alice"}] != nil {
				t.Errorf("unexpected states without sessions: %+v", r.states.all)
			}
		})
	}
}

// Users of a directory or hook keep their limits and quotas, even if they are then added to the configuration.
func TestChangeKeepsExternalUsers(t *testing.T) {
	cfg := config.Default()
	hook := config.Tenant{Bucket: "acme-data"}
	hook.Auth.Hook.URL = "http://127.0.0.1:1/"
	cfg.Tenants = map[string]*config.Tenant{"acme": &hook}
	buckets := map[string]*s3client.Bucket{"acme": {Tenant: "acme"}}
	r := registryWith(t, cfg, buckets)
	before := r.current.Load().tenants["acme"]
	bob, err := r.externalUser(before, "bob", &config.User{Quota: 1000})
	must.OK(t, err)
	configured := map[string]*config.User{"bob": {Quota: 1000}}
	for _, step := range []struct {
		name  string
		users map[string]*config.User
	}{{"external", nil}, {"configured", configured}} {
		changed, next := hook, *cfg
		changed.Limits.User = config.Scope{Usage: limits.Usage{Transfers: 1}}
		changed.Users = step.users
		next.Tenants = map[string]*config.Tenant{"acme": &changed}
		change(t, r, &next, buckets)
		if all := r.current.Load().tenants["acme"].allUsers(); len(all) != 1 || all[0] == bob || all[0].state != bob.state {
			t.Errorf("%s: unexpected users %+v", step.name, all)
		}
	}
	// A login that started before the change does not restore the old limits.
	if _, err := r.externalUser(before, "bob", &config.User{Quota: 1000}); !errors.Is(err, errReplaced) {
		t.Errorf("unexpected error of the old tenant: %v", err)
	}
	release, err := limits.Scopes{bob.state.scope}.AcquireTransfer()
	must.OK(t, err)
	defer release()
	if _, err := (limits.Scopes{bob.state.scope}).AcquireTransfer(); err == nil {
		t.Error("the new limit does not apply")
	}
}

// A user of a directory or hook is forgotten and logs in again while a configuration is prepared. The session is
// still counted if the new configuration has the user. A configuration that is prepared but not applied creates no
// states.
func TestExternalUserWhileAChangeIsPrepared(t *testing.T) {
	cfg := config.Default()
	hook := config.Tenant{Bucket: "acme-data"}
	hook.Auth.Hook.URL = "http://127.0.0.1:1/"
	cfg.Tenants = map[string]*config.Tenant{"acme": &hook}
	buckets := map[string]*s3client.Bucket{"acme": {Tenant: "acme"}}
	r := registryWith(t, cfg, buckets)
	before := r.current.Load().tenants["acme"]
	bring := func() *User {
		t.Helper()
		bob, err := r.externalUser(before, "bob", &config.User{})
		must.OK(t, err)
		return bob
	}
	bring()
	changed, next := hook, *cfg
	changed.Users = map[string]*config.User{"bob": {}, "carol": {}}
	next.Tenants = map[string]*config.Tenant{"acme": &changed}
	states := len(r.states.all)
	prepared, err := r.Prepare(&next, r.current.Load().settings.bundle, buckets, nil, driver.Options{})
	must.OK(t, err)
	if len(r.states.all) != states {
		t.Errorf("Prepare created states: %v", r.states.all)
	}
	r.forgetIdle(before)
	bob := bring()
	release, err := limits.Scopes{bob.state.scope}.AcquireSession()
	must.OK(t, err)
	defer release()
	prepared.Apply()
	if now := r.current.Load().tenants["acme"].users["bob"]; !now.state.scope.InUse() {
		t.Error("the session is no longer counted")
	}
}
