package account

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
	"github.com/babelftp/babelftp/internal/users/bans"
)

// served returns three tenants without a service of their own and one tenant with its own service.
func served() map[string]*config.Tenant {
	users := func(name string) map[string]*config.User {
		return map[string]*config.User{name: {PasswordHash: servicetest.PasswordHash()}}
	}
	return map[string]*config.Tenant{
		"acme":     {Bucket: "acme-data", Hosts: []string{"ftp.acme.example"}, Users: users("alice")},
		"umbrella": {Bucket: "umbrella-data", Hosts: []string{"umbrella.example"}, Users: users("alice")},
		"empty":    {Bucket: "empty-data", Hosts: []string{"empty.example"}, Users: users("erin")},
		"own":      {Bucket: "own-data", Hosts: []string{"own.example"}},
	}
}

// The service of the server authenticates users who are not in the configuration, and its response selects the tenant.
func TestServiceOfServer(t *testing.T) {
	for _, tc := range []struct {
		name                         string
		host, user, password, answer string
		asked                        string // tenant, user and password of the request, or empty
		want                         string // the user, or a part of the error
	}{
		{"plain", "", "bob", password, "acme", " bob " + password, "bob@acme"},
		{"another-tenant", "", "bob", password, "empty", " bob " + password, "bob@empty"},
		{"mail-address", "", "bob@acme.example", password, "acme", " bob@acme.example " + password,
			"bob@acme.example@acme"},
		{"qualified", "", "bob@acme", password, "acme", "acme bob " + password, "bob@acme"},
		{"host", "FTP.acme.example", "bob", password, "acme", "acme bob " + password, "bob@acme"},
		{"name-of-another-tenant", "ftp.acme.example", "erin", password, "acme", "acme erin " + password, "erin@acme"},
		{"unicode-form", "", "e\u0301", password, "acme", " \u00e9 " + password, "\u00e9@acme"},

		{"wrong-password", "", "bob", "wrong", "acme", " bob wrong", "unknown user: "},
		{"no-tenant", "", "bob", password, "", " bob " + password, `user "bob": the password is right, but auth names no tenant`},
		{"no-tenant-for-a-host", "ftp.acme.example", "bob", password, "", "acme bob " + password, "names no tenant"},
		{"unknown-tenant", "", "bob", password, "Acme", " bob " + password, `"Acme", which is not configured`},
		{"long-tenant", "", "bob", password, strings.Repeat("x", 100), " bob " + password, strings.Repeat("x", 64) + `",`},
		{"another-than-asked", "", "bob@acme", password, "empty", "acme bob " + password, `the client requested "acme"`},
		{"another-than-the-host", "empty.example", "bob", password, "acme", "empty bob " + password,
			`names the tenant "acme", and the client requested "empty"`},
		{"tenant-with-its-own", "", "bob", password, "own", " bob " + password, "auth of its own"},

		{"known", "", "erin", "wrong", "acme", "", `user "erin" of tenant "empty"`},
		{"known-to-two", "", "alice", password, "empty", "", "unknown user: "},
		{"known-to-the-tenant", "", "alice@acme", "wrong", "acme", "", `user "alice" of tenant "acme"`},
		{"tenant-with-its-own-source", "", "bob@own", password, "", "own bob " + password, "bob@own"},
		{"own-source-with-a-tenant", "", "bob@own", password, "own", "own bob " + password, "bob@own"},
		{"own-source-with-another", "", "bob@own", password, "acme", "own bob " + password, `requested "own"`},
		{"unknown-host", "nowhere.example", "bob", password, "acme", "", "unknown user: "},
		{"no-text", "", "\xe9", password, "acme", "", "unknown user: "},
		{"password-no-text", "", "bob", "\xe9", "acme", "", "unknown user: "},
		{"no-password", "", "bob", "", "acme", "", "unknown user: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			source := &fakeSource{tenant: tc.answer}
			r := serving(withSources(t, served(), source, "own"), source)
			got, err := login(r, tc.host, tc.user, tc.password)
			if asked := strings.Join(source.asked, ", "); asked != tc.asked {
				t.Errorf("the service got %q, want %q", asked, tc.asked)
			}
			switch {
			case err == nil && got.owner() != tc.want:
				t.Errorf("got user %s, want %s", got.owner(), tc.want)
			case err != nil && (!errors.Is(err, ErrLoginRefused) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got error %v, want %s", err, tc.want)
			}
		})
	}
}

// If the service is down, the login is not refused, and the error does not contain the user name.
func TestServiceOfServerIsDown(t *testing.T) {
	down := errors.New("down")
	r := serving(withSources(t, served(), nil), &fakeSource{err: down})
	for user, tenant := range map[string]string{"bob": "", "bob@acme": "acme"} {
		_, err := login(r, "", user, password)
		if !errors.Is(err, down) || errors.Is(err, ErrLoginRefused) || FailedTenant(err) != tenant ||
			strings.Contains(err.Error(), "bob") || strings.Contains(err.Error(), "unknown") {
			t.Errorf("%s: %v", user, err)
		}
	}
}

// Each refusal takes as long as a refusal by the service, no matter what the configuration or the response contains.
func TestRefusalsTakeAsLongAsTheServiceOfServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 3 * time.Second
		tenants := served()
		delete(tenants, "own")
		r := serving(withSources(t, tenants, nil), slowSource(takes))
		r.throttle.SetLongest(0)
		for _, user := range []string{"nobody", "alice", "erin", "alice@acme", "nobody@acme", "erin@empty"} {
			began := time.Now()
			if _, err := login(r, "", user, "wrong"); !errors.Is(err, ErrLoginRefused) {
				t.Errorf("%s: %v", user, err)
			}
			if took := time.Since(began); took != takes {
				t.Errorf("refusal of %s: took %v, want %v", user, took, takes)
			}
		}
	})
}

// Failures are counted for the name that the client requested, no matter what the service responds. A wrong tenant
// counts like a wrong password.
func TestFailuresBeforeTheTenantIsKnown(t *testing.T) {
	r := serving(withSources(t, served(), nil), &fakeSource{tenant: "acme"})
	for _, tc := range []struct{ host, user, want string }{
		{"", "bob", "bob@*"}, {"", "bob@acme", "bob@acme"}, {"ftp.acme.example", "bob", "bob@acme"}, {"", "erin", "erin@*"},
		{"", "alice", "unknown-"}, {"nowhere.example", "bob", "unknown-"},
	} {
		if id := r.identify(&LoginRequest{Host: tc.host, User: tc.user}).id; !strings.HasPrefix(id, tc.want) {
			t.Errorf("%s at %q: got identity %s, want %s", tc.user, tc.host, id, tc.want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		source := &fakeSource{}
		r := serving(withSources(t, served(), nil), source)
		for _, step := range []struct {
			tenant string
			waits  time.Duration
		}{{"nowhere", 0}, {"", 250 * time.Millisecond}, {"acme", 500 * time.Millisecond}} {
			source.tenant = step.tenant
			began := time.Now()
			if _, err := login(r, "", "bob", password); (err == nil) != (step.tenant == "acme") {
				t.Errorf("%q: %v", step.tenant, err)
			}
			if waits := time.Since(began).Round(10 * time.Millisecond); waits != step.waits {
				t.Errorf("login to %q: waited %v, want %v", step.tenant, waits, step.waits)
			}
		}
	})
}

// A banned name cannot log in, and the service gets no request. Failures are counted before the tenant is known, and
// the right password for a wrong tenant counts as a failure. A ban of user@tenant also applies to logins without the
// tenant. If the service is down, nobody is banned.
func TestBansOfTheService(t *testing.T) {
	source := &fakeSource{}
	r := serving(withSources(t, served(), nil), source)
	r.throttle.SetLongest(0)
	const long = 24 * time.Hour
	r.bans = bans.New(config.Bans{UserScore: 2, Time: long, HalfLife: long}, config.Networks{},
		slog.New(slog.DiscardHandler), func(bans.Ban) {})
	session := &limits.Session{Addr: netip.MustParseAddr("192.0.2.1"), Cut: func(error) {}}
	_, err := r.bans.Admit(session)
	must.OK(t, err)
	down := errors.New("down")
	for _, step := range []struct {
		name                   string
		before                 func()
		user, password, answer string
		want                   string // refused, banned or down; empty if the login succeeds
		asked                  string // tenant and user of the request
	}{
		{"guess", nil, "bob", "guess", "acme", "refused", " bob"},
		{"guess-again", nil, "bob", "guess", "acme", "refused", " bob"},
		{"banned", nil, "bob", password, "acme", "banned", ""},
		{"with-the-tenant", nil, "bob@acme", password, "acme", "", "acme bob"},
		{"another", nil, "frank", password, "umbrella", "", " frank"},
		{"unbanned", func() { r.bans.Remove("bob@*") }, "bob", password, "acme", "", " bob"},

		{"wrong-tenant", nil, "frank@acme", password, "umbrella", "refused", "acme frank"},
		{"wrong-tenant-again", nil, "frank@acme", password, "umbrella", "refused", "acme frank"},
		{"banned-in-this-tenant", nil, "frank@acme", password, "umbrella", "banned", ""},
		{"not-in-the-own", nil, "frank@umbrella", password, "umbrella", "", "umbrella frank"},
		{"no-tenant", nil, "lost", password, "nowhere", "refused", " lost"},
		{"no-tenant-again", nil, "lost", password, "nowhere", "refused", " lost"},
		{"no-tenant-is-banned", nil, "lost", password, "nowhere", "banned", ""},

		{"administrator", func() { r.bans.Add("dora@acme", 0) }, "dora@acme", password, "acme", "banned", ""},
		{"administrator-and-the-plain-name", nil, "dora", password, "acme", "banned", " dora"},

		{"down", func() { source.err = down }, "erik", password, "", "down", " erik"},
		{"down-again", nil, "erik", password, "", "down", " erik"},
		{"down-for-long", nil, "erik", password, "", "down", " erik"},
	} {
		if step.before != nil {
			step.before()
		}
		source.asked, source.tenant = nil, step.answer
		_, err := r.Login(t.Context(), &LoginRequest{User: step.user, Password: step.password,
			RemoteAddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, Session: session})
		got := ""
		switch {
		case errors.Is(err, ErrLoginRefused):
			got = "refused"
		case reaches(err, limits.Bans):
			got = "banned"
		case err != nil:
			got = err.Error()
		}
		if asked := strings.TrimSuffix(strings.Join(source.asked, ", "), " "+step.password); got != step.want || asked != step.asked {
			t.Errorf("%s: %q, and the service got %q; want %q and %q", step.name, got, asked, step.want, step.asked)
		}
	}
}

// The rules of a tenant apply after the response has named the tenant.
func TestRulesOfTheTenantInTheResponse(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.crt")
	must.WriteFile(t, ca, must.NewAuthority(t, "root").Certificate)
	certificate := func(tenant *config.Tenant) {
		tenant.TLS.ClientCertificates = config.ClientCertificates{CAFile: ca, Required: true}
	}
	for name, tc := range map[string]struct {
		tenant string
		change func(*config.Tenant)
		want   func(error) bool
	}{
		"certificate":           {"acme", certificate, func(err error) bool { return errors.Is(err, ErrCertificate) }},
		"certificate-elsewhere": {"umbrella", certificate, func(err error) bool { return err == nil }},
		"network": {"acme", func(tenant *config.Tenant) {
			tenant.Limits.Tenant.Deny = []value.Network{{Prefix: client}}
		}, func(err error) bool { return reaches(err, limits.Deny) }},
		"sessions": {"acme", func(tenant *config.Tenant) {
			tenant.Limits.Tenant.Sessions = 1
		}, func(err error) bool { return reaches(err, "tenant.sessions") }},
	} {
		tenants := served()
		tc.change(tenants[tc.tenant])
		source := &fakeSource{tenant: "acme"}
		r := serving(withSources(t, tenants, nil), source)
		if name == "sessions" {
			_, err := login(r, "", "alice@acme", password)
			must.OK(t, err)
		}
		if _, err := login(r, "", "bob", password); !tc.want(err) || len(source.asked) != 1 {
			t.Errorf("%s: %v, and the service got %q", name, err, source.asked)
		}
	}
}

// reaches reports whether an error is from this limit.
func reaches(err error, limit string) bool {
	full, reached := errors.AsType[*FullError](err)
	return reached && full.Limit.Limit == limit
}

// The setting of the user takes precedence over the tenant's, which takes precedence over the server's.
func TestRequiresTLS(t *testing.T) {
	yes, no := true, false
	for _, tc := range []struct {
		user, tenant *bool
		server, want bool
	}{
		{nil, nil, true, true}, {nil, nil, false, false}, {nil, &yes, false, true}, {nil, &no, true, false},
		{&yes, &no, false, true}, {&no, &yes, true, false},
	} {
		tenants := served()
		tenants["acme"].TLS.Required, tenants["acme"].Users["alice"].TLS.Required = tc.tenant, tc.user
		req := &LoginRequest{User: "alice@acme", TLSRequired: tc.server}
		if got := withSources(t, tenants, nil).RequiresTLS(req); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// Before the tenant is known, TLS is required if a tenant that the service may name requires it.
func TestTLSBeforeTheTenantIsKnown(t *testing.T) {
	yes, no := true, false
	for _, tc := range []struct {
		name, tenant, user string
		required           *bool
		server, want       bool
	}{
		{"none", "acme", "bob", nil, false, false},
		{"a-tenant", "acme", "bob", &yes, false, true},
		{"another-tenant-is-asked", "acme", "bob@empty", &yes, false, false},
		{"known", "acme", "erin", &yes, false, false},
		{"tenant-with-its-own", "own", "bob", &yes, false, false},
		{"not-a-tenant", "acme", "bob", &no, true, true},
		{"not-the-tenant-asked", "acme", "bob@acme", &no, true, false},
	} {
		tenants := served()
		tenants[tc.tenant].TLS.Required = tc.required
		source := &fakeSource{tenant: "acme"}
		r := serving(withSources(t, tenants, source, "own"), source)
		req := &LoginRequest{User: tc.user, Password: password, TLSRequired: tc.server,
			RemoteAddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}}
		if got := r.RequiresTLS(req); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
		if _, err := r.Login(context.Background(), req); tc.want &&
			(!errors.Is(err, ErrTLSRequired) || len(source.asked) > 0) {
			t.Errorf("%s: got %v and %d requests to the service", tc.name, err, len(source.asked))
		}
	}
}

// If the service is replaced, its users keep their state, and logins in progress are retried.
func TestServiceIsReplaced(t *testing.T) {
	cfg := config.Default()
	cfg.Auth.Hook.URL = "http://127.0.0.1:1/"
	cfg.Tenants = served()
	buckets := map[string]*s3client.Bucket{}
	for name := range cfg.Tenants {
		buckets[name] = &s3client.Bucket{Tenant: name}
	}
	r := registryWith(t, cfg, buckets)
	first := r.current.Load()
	acme := first.tenants["acme"]
	bob, err := r.externalUser(acme, "bob", &config.User{Quota: 1000})
	must.OK(t, err)
	before := r.identify(&LoginRequest{User: "bob"})
	change(t, r, cfg, buckets)
	if r.current.Load().settings.service != first.settings.service || r.current.Load().tenants["acme"] != acme {
		t.Error("the same configuration created another service")
	}
	next := *cfg
	next.Auth.Hook.URL = "http://127.0.0.1:2/"
	change(t, r, &next, buckets)
	second := r.current.Load()
	if second.settings.service == first.settings.service || second.tenants["acme"] == acme {
		t.Fatal("the service was not replaced")
	}
	if _, err := r.externalUser(second.tenants["acme"], "alice", &config.User{}); !errors.Is(err, errReplaced) {
		t.Errorf("the service decided on a user that is now in the configuration: %v", err)
	}
	if _, err := r.tenantOf(before, "acme"); !errors.Is(err, errReplaced) {
		t.Errorf("response of the old service: %v", err)
	}
	if again := second.tenants["acme"].external.snapshot()["bob"]; again == nil || again.state != bob.state {
		t.Error("the user was forgotten")
	}
	next.Auth = config.Auth{}
	change(t, r, &next, buckets)
	if r.current.Load().tenants["acme"].external != nil || r.identify(&LoginRequest{User: "bob"}).usesService() {
		t.Error("the service was not removed with its section")
	}
}
