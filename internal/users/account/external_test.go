package account

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/schedule"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
	"github.com/babelftp/babelftp/internal/users/auth"
	"github.com/babelftp/babelftp/internal/users/bans"
)

// A fakeSource accepts the password that all tests use.
type fakeSource struct {
	mu       sync.Mutex
	asked    []string // the requests: tenant, user and password
	tenant   string   // in the responses
	settings config.User
	err      error
}

func (s *fakeSource) Authenticate(_ context.Context, req *auth.Request) (*auth.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, req.Tenant+" "+req.User+" "+req.Password)
	if s.err == nil && req.Password != password {
		return nil, fmt.Errorf("source: %w", ErrLoginRefused)
	}
	if s.err != nil {
		return nil, s.err
	}
	settings := s.settings
	return &auth.Response{Tenant: s.tenant, User: &settings}, nil
}

// withSources returns a registry in which the named tenants have a source of their own.
func withSources(t *testing.T, tenants map[string]*config.Tenant, source auth.Source, names ...string) *Registry {
	t.Helper()
	cfg := config.Default()
	cfg.Tenants = tenants
	r := registryOf(t, cfg)
	for _, name := range names {
		r.current.Load().tenants[name].external = &externalUsers{
			service: newFake(source, false), users: map[string]*User{}}
	}
	return r
}

// newFake returns the service of a tenant or of the server.
func newFake(source auth.Source, ofServer bool) *service {
	return &service{source: source, ofServer: ofServer, queue: schedule.NewQueue(maxConcurrentRequests, 0)}
}

// serving sets the service of the server, which the tenants without a service of their own share.
func serving(r *Registry, source auth.Source) *Registry {
	d := *r.current.Load()
	d.settings.service, d.users = newFake(source, true), map[string]*User{}
	for _, t := range d.tenants {
		if t.external == nil {
			t.external = &externalUsers{service: d.settings.service, users: map[string]*User{}}
		}
		d.add(t)
	}
	r.current.Store(&d)
	return r
}

func login(r *Registry, host, user, password string) (*Login, error) {
	return r.Login(context.Background(), &LoginRequest{
		Host: host, User: user, Password: password, RemoteAddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)},
	})
}

// The source of a tenant gets only logins to this tenant, and never logins of configured users.
func TestRequestsToTheSource(t *testing.T) {
	users := map[string]*config.User{"alice": {PasswordHash: servicetest.PasswordHash()}}
	several := map[string]*config.Tenant{
		"acme":  {Bucket: "acme-data", Hosts: []string{"ftp.acme.example"}, Users: users},
		"other": {Bucket: "other-data", Hosts: []string{"other.example"}, Users: users},
		"plain": {Bucket: "plain-data", Hosts: []string{"plain.example"}},
	}
	one := map[string]*config.Tenant{"acme": {Bucket: "acme-data", Users: users,
		Compatibility: config.Compatibility{Charset: servicetest.Encoding(t, "windows-1252")}}}
	for _, tc := range []struct {
		name                 string
		tenants              map[string]*config.Tenant
		host, user, password string
		want                 string // the request to the source, or empty
	}{
		{"host", several, "FTP.acme.example", "bob", "x", "acme bob x"},
		{"host-and-qualified", several, "ftp.acme.example", "bob@acme", "x", "acme bob x"},
		{"host-and-another-tenant", several, "ftp.acme.example", "bob@other", "x", "acme bob@other x"},
		{"host-without-a-source", several, "plain.example", "bob", "x", ""},
		{"unknown-host", several, "ftp.example", "bob", "x", ""},
		{"qualified", several, "", "bob@acme", "x", "acme bob x"},
		{"qualified-twice", several, "", "bob@home@other", "x", "other bob@home x"},
		{"qualified-without-a-source", several, "", "bob@plain", "x", ""},
		{"qualified-by-no-tenant", several, "", "bob@nowhere", "x", ""},
		{"name-alone", several, "", "bob", "x", ""},
		{"name-of-two-tenants", several, "", "alice", "x", ""},
		{"configured", several, "ftp.acme.example", "alice", "x", ""},
		{"configured-and-qualified", several, "", "alice@acme", "x", ""},
		{"configured-in-capitals", several, "ftp.acme.example", "ALICE", "x", ""},
		{"configured-with-spaces", several, "", " Alice @acme", "x", ""},
		{"configured-in-full-stops", several, "ftp.acme.example", "alice.", "x", "acme alice. x"},
		{"only-tenant", one, "", "bob", "x", "acme bob x"},
		{"only-tenant-qualified", one, "", "bob@acme", "x", "acme bob x"},
		{"only-tenant-configured", one, "", "alice", "x", ""},
		{"unicode-form", one, "", "e\u0301t\u00e9", "x", "acme \u00e9t\u00e9 x"},
		{"charset", one, "", "\xe9t\xe9", "\xe9", "acme \u00e9t\u00e9 \u00e9"},
		{"no-name", one, "", "@acme", "x", ""},
		{"control-character", one, "", "bob\t", "x", ""},
		{"no-password", one, "", "bob", "", ""},
		{"no-text", several, "ftp.acme.example", "bob", "\xe9", ""},
		{"no-text-as-name", several, "ftp.acme.example", "\xe9", "x", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			source := &fakeSource{}
			names := []string{"acme", "other"}
			if len(tc.tenants) == 1 {
				names = names[:1]
			}
			if _, err := login(withSources(t, tc.tenants, source, names...), tc.host, tc.user, tc.password); !errors.Is(
				err, ErrLoginRefused) {
				t.Fatal(err)
			}
			if got := strings.Join(source.asked, ", "); got != tc.want {
				t.Errorf("the source got %q, want %q", got, tc.want)
			}
		})
	}
}

// All spellings of a name are the same user: they share bans and limits.
func TestSpellings(t *testing.T) {
	r := withSources(t, map[string]*config.Tenant{"acme": {Bucket: "acme-data"}}, &fakeSource{}, "acme")
	first, err := login(r, "", "bob", password)
	must.OK(t, err)
	for _, name := range []string{"BOB", " bob", "Bob "} {
		u, err := login(r, "", name, password)
		must.OK(t, err)
		if u.state != first.state || u.Name != name {
			t.Errorf("%q has its own state, or the name %q", name, u.Name)
		}
	}
	ban, err := bans.Parse("boB@acme")
	must.OK(t, err)
	r.bans.Add(ban, time.Hour)
	for _, name := range []string{"bob", "BOB", " bob", "bob@acme", "bOb @acme"} {
		if _, err := login(r, "", name, password); !errors.As(err, new(*FullError)) {
			t.Errorf("%q: got %v, want a ban", name, err)
		}
	}
}

// The throttle counts refused logins, but not those that a source could not decide.
func TestSourceFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeSource{}
		r := withSources(t, map[string]*config.Tenant{"acme": {Bucket: "acme-data"}}, source, "acme")
		down := errors.New("down")
		for _, step := range []struct {
			password string
			err      error
			want     error
			waits    time.Duration
		}{
			{password, down, down, 0},
			{password, down, down, 0},
			{"wrong", nil, ErrLoginRefused, 0},
			{password, down, down, 250 * time.Millisecond},
			{password, nil, nil, 250 * time.Millisecond},
		} {
			source.err = step.err
			begin := time.Now()
			_, err := login(r, "", "bob", step.password)
			if waits := time.Since(begin).Round(10 * time.Millisecond); !errors.Is(err, step.want) ||
				waits != step.waits {
				t.Errorf("%s: got %v after %v, want %v after %v", step.password, err, waits, step.want, step.waits)
			}
			if err != nil && strings.Contains(err.Error(), "bob") {
				t.Errorf("the error contains the user name: %v", err)
			}
		}
	})
}

// A login that a source refused waits in the queue and hashes the password, like any other refused login.
func TestSourceRefusalHashes(t *testing.T) {
	r := withSources(t, map[string]*config.Tenant{"acme": {Bucket: "acme-data"}}, &fakeSource{}, "acme")
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		if _, err := r.verifier.queue.Acquire(t.Context(), schedule.Key{}); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for password, want := range map[string]error{"wrong": context.Canceled, password: nil} {
		if _, err := r.decide(
			ended, client, r.identify(&LoginRequest{User: "bob"}),
			&LoginRequest{Password: password}); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", password, err, want)
		}
	}
}

// A user keeps the quota while the settings are unchanged, and idle users are forgotten when there are too many.
func TestExternalUsersAreRemembered(t *testing.T) {
	source := &fakeSource{settings: config.User{Root: "/bob", Quota: 1000}}
	r := withSources(t, map[string]*config.Tenant{"acme": {Bucket: "acme-data"}}, source, "acme")
	acme := r.current.Load().tenants["acme"]
	get := func(name string) *User {
		t.Helper()
		settings := source.settings
		u, err := r.externalUser(acme, name, &settings)
		must.OK(t, err)
		return u
	}
	first := get("bob")
	if get("bob") != first {
		t.Error("got a different user")
	}
	<-r.Uncounted()
	due := r.DueQuotas(time.Hour)
	if len(due) != 1 || due[0].User != "bob" || due[0].Limit != 1000 || len(r.DueQuotas(time.Hour)) != 0 {
		t.Errorf("unexpected quotas to count: %+v", due)
	}
	source.settings.Quota = 2000
	second := get("bob")
	if second == first || second.state != first.state {
		t.Error("the sessions of the user are no longer counted")
	}
	if now := r.quotas(first); len(now) != 1 || now[0].Limit != 2000 || now[0].Usage != due[0].Usage {
		t.Errorf("unexpected quotas of an earlier session: %+v", now)
	}
	release, err := limits.Scopes{second.state.scope}.AcquireSession()
	must.OK(t, err)
	defer release()
	for i := range maxRemembered + 1 {
		get(fmt.Sprint(i))
	}
	if n, states := len(acme.external.users), len(r.states.all); n > maxRemembered || states > n+1 {
		t.Errorf("got %d users and %d states", n, states)
	}
	if get("bob") != second {
		t.Error("a user with a session was forgotten")
	}
}

// Refusing a configured user takes as long as refusing a user of the source, and so does refusing a name that neither
// of them has.
func TestRefusalsTakeAsLongAsTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := map[string]*config.Tenant{
			"acme": {Bucket: "acme-data",
				Users: map[string]*config.User{"alice": {PasswordHash: servicetest.PasswordHash()}}},
			"umbrella": {Bucket: "umbrella-data",
				Users: map[string]*config.User{"bob": {PasswordHash: servicetest.PasswordHash()}}},
		}
		const takes = 3 * time.Second
		r := withSources(t, cfg, slowSource(takes), "acme")
		r.throttle.SetLongest(0)
		for _, tc := range []struct {
			user, password string
			want           time.Duration
		}{
			{"nobody@acme", "wrong", takes},
			{"alice@acme", "wrong", takes},
			{"alice@acme", "", 0},
			{"nobody@acme", "", 0},
			{"alice", "wrong", 0},
			{"nobody", "wrong", 0},
			{"bob@umbrella", "wrong", 0},
			{"nobody@umbrella", "wrong", 0},
		} {
			began := time.Now()
			if _, err := login(r, "", tc.user, tc.password); !errors.Is(err, ErrLoginRefused) {
				t.Errorf("%s: %v", tc.user, err)
			}
			if took := time.Since(began); took != tc.want {
				t.Errorf(
					"refusal of %s with the password %q: took %v, want %v", tc.user, tc.password, took, tc.want)
			}
		}
	})
}

// A slowSource refuses everyone after a delay.
type slowSource time.Duration

func (s slowSource) Authenticate(ctx context.Context, _ *auth.Request) (*auth.Response, error) {
	if err := limits.Sleep(ctx, time.Duration(s)); err != nil {
		return nil, err
	}
	return nil, ErrLoginRefused
}

// A login is retried if its user is forgotten before the session is counted. A user with a session keeps it when
// others are forgotten or the settings change.
func TestForgottenDuringALogin(t *testing.T) {
	r := withSources(t, map[string]*config.Tenant{"acme": {Bucket: "acme-data"}}, &fakeSource{}, "acme")
	acme := r.current.Load().tenants["acme"]
	get := func(name, root string) *User {
		t.Helper()
		u, err := r.externalUser(acme, name, &config.User{Root: root})
		must.OK(t, err)
		return u
	}
	enter := func(u *User) error {
		_, err := r.begin(&LoginRequest{}, u, limits.Scopes{acme.state.scope, u.state.scope})
		return err
	}
	bob := get("bob", "/")
	r.forgetIdle(acme)
	if err := enter(bob); !errors.Is(err, errReplaced) {
		t.Errorf("the login of a forgotten user: got %v, want %v", err, errReplaced)
	}
	if acme.state.scope.InUse() {
		t.Error("the session of a repeated login is counted")
	}
	get("bob", "/")
	for i := range maxRemembered - 1 {
		get(fmt.Sprint(i), "/")
	}
	bob = get("bob", "/other") // while all others are forgotten
	if err := enter(bob); err != nil {
		t.Error(err)
	}
	if again := get("bob", "/"); again.state != bob.state {
		t.Error("the session of the user is no longer counted")
	}
}
