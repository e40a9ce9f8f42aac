package server

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A memorySource has custom resources and Secrets in memory.
type memorySource struct {
	known   chan struct{}
	changed chan struct{}

	mu         sync.Mutex
	tenants    map[string]*config.Resource
	users      map[string]*config.Resource
	secrets    map[string]map[string][]byte
	version    int
	problem    error
	applied    *config.ResourceMerge
	configured []*config.Kubernetes
	resources  chan struct{} // closed by the next Applied
}

var _ ResourceSource = (*memorySource)(nil)

func newMemorySource() *memorySource {
	return &memorySource{
		known: make(chan struct{}), changed: make(chan struct{}, 1), tenants: map[string]*config.Resource{},
		users: map[string]*config.Resource{}, secrets: map[string]map[string][]byte{}, resources: make(chan struct{}),
	}
}

func (m *memorySource) Configure(k *config.Kubernetes) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.configured = append(m.configured, k)
}

func (*memorySource) Leading() bool { return true }

func (*memorySource) Run(ctx context.Context, _ *Server) { <-ctx.Done() }

func (m *memorySource) Known() <-chan struct{} { return m.known }

func (m *memorySource) Changed() <-chan struct{} { return m.changed }

func (m *memorySource) Current() *config.Resources {
	m.mu.Lock()
	defer m.mu.Unlock()
	secrets := maps.Clone(m.secrets)
	return &config.Resources{
		Tenants: slices.Collect(maps.Values(m.tenants)), Users: slices.Collect(maps.Values(m.users)),
		References: memoryReferences{secrets},
	}
}

func (m *memorySource) Problem() (time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Unix(1, 0), m.problem
}

func (m *memorySource) Applied(merge *config.ResourceMerge) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied = merge
	close(m.resources)
	m.resources = make(chan struct{})
}

// memoryReferences are Secrets by NAMESPACE/NAME.
type memoryReferences struct{ secrets map[string]map[string][]byte }

func (r memoryReferences) Secret(namespace, name string) (data map[string][]byte, version string, ok bool) {
	data, ok = r.secrets[namespace+"/"+name]
	return data, fmt.Sprintf("%p", data), ok
}

func (memoryReferences) ConfigMap(string, string) (map[string]string, string, bool) {
	return nil, "", false
}

// change changes resources and Secrets at once.
func (m *memorySource) change(change func()) {
	m.mu.Lock()
	change()
	m.mu.Unlock()
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// resource returns a new version of a resource in the namespace team-a.
func (m *memorySource) resource(kind config.ResourceKind, name string, spec map[string]any) *config.Resource {
	text, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	m.version++
	return &config.Resource{Kind: kind, Namespace: "team-a", Name: name, UID: string(kind) + name,
		Generation: int64(m.version), Created: time.Unix(1, 0), Spec: text}
}

// putTenant and putUser create or change a resource. Call them from change.
func (m *memorySource) putTenant(name string, spec map[string]any) {
	m.tenants[name] = m.resource(config.TenantResource, name, spec)
}

func (m *memorySource) putUser(name string, spec map[string]any) {
	m.users[name] = m.resource(config.UserResource, name, spec)
}

// putPassword creates or changes the Secret of a user.
func (m *memorySource) putPassword(name, hash string) {
	m.secrets["team-a/"+name] = map[string][]byte{"password_hash": []byte(hash)}
}

// await waits until the outcome of a resource in use is as wanted.
func (m *memorySource) await(t *testing.T, name string, want func(*config.ResourceOutcome) bool) *config.ResourceOutcome {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		m.mu.Lock()
		merge, next := m.applied, m.resources
		m.mu.Unlock()
		var found *config.ResourceOutcome
		if merge != nil {
			for _, o := range merge.Outcomes {
				if o.Resource.Name == name {
					found = o
				}
			}
		}
		if want(found) {
			return found
		}
		select {
		case <-next:
		case <-deadline:
			t.Fatalf("the outcome of %s is %+v", name, found)
		}
	}
}

// isIn reports whether the outcome is about this version of a resource.
func (m *memorySource) isIn(r *config.Resource) func(*config.ResourceOutcome) bool {
	return func(o *config.ResourceOutcome) bool { return o != nil && o.Resource == r }
}

func isGone(o *config.ResourceOutcome) bool { return o == nil }

// A resourceSite is a server with a tenant of its files, and custom resources in the namespace team-a: the tenant shop
// with the user alice, and the tenant till with the user bob.
type resourceSite struct {
	*memorySource
	t    *testing.T
	s3   *s3test.Server
	cfg  *config.Config
	srv  *Server
	shop map[string]any // the spec of the tenant shop

	audit servicetest.Log // the audit log, if it is written to standard output
}

// newResourceSite starts a server that does not know its resources yet.
func newResourceSite(t *testing.T, change func(*config.Config)) *resourceSite {
	s, cfg := simulated(t)
	site := &resourceSite{memorySource: newMemorySource(), t: t, s3: s, cfg: cfg}
	shop, till := s.Bucket(t), s.Bucket(t)
	cfg.Kubernetes = config.Kubernetes{
		Folder: t.TempDir(), Namespaces: map[string]*config.Namespace{"team-a": {Buckets: []string{shop, till}}},
	}
	change(cfg)
	hash := servicetest.PasswordHash().Reveal()
	site.shop = map[string]any{"bucket": shop, "hosts": []string{"shop.team-a.example"}}
	site.putTenant("shop", site.shop)
	site.putTenant("till", map[string]any{"bucket": till})
	for user, tenant := range map[string]string{"alice": "shop", "bob": "till"} {
		site.putPassword(user, hash)
		site.putUser(user, map[string]any{"tenant": tenant, "password_hash_secret": map[string]any{"name": user}})
	}
	site.srv = serve(t, cfg, Options{
		AWS: s.AWSConfig(), Resources: site.memorySource, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Stdout: &site.audit,
	})
	return site
}

// know tells the server its resources, and waits until they are in use.
func (s *resourceSite) know() {
	s.t.Helper()
	close(s.known)
	s.await(s.t, "alice", s.isIn(s.users["alice"]))
	waitForChecks(s.t, s.srv)
}

// login returns a session.
func (s *resourceSite) login(user string) *ftptest.Client {
	s.t.Helper()
	c := ftptest.Dial(s.t, s.srv.Addr().String())
	c.Login(user, servicetest.Password)
	return c
}

// refused expects the reply to a login with the first password.
func (s *resourceSite) refused(user string, code int) {
	s.t.Helper()
	c := ftptest.Dial(s.t, s.srv.Addr().String())
	c.Command(331, "USER "+user)
	c.Command(code, "PASS "+servicetest.Password)
}

// Until the resources are known, the server is alive but not ready, logins of users that may exist are not decided, and
// users of files can log in.
func TestUnknownResources(t *testing.T) {
	s := newResourceSite(t, func(cfg *config.Config) { cfg.Limits.Bans.UserScore, cfg.Limits.Bans.AddressScore = 2, 2 })
	waitForChecks(t, s.srv)
	if status, text := get(t, s.srv, "/readyz"); status != http.StatusServiceUnavailable ||
		!strings.Contains(text, "custom resources are not known yet") {
		t.Errorf("/readyz: %d %s", status, text)
	}
	if status, _ := get(t, s.srv, "/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: %d", status)
	}
	s.refused("alice@team-a_shop", 421)
	s.refused("nobody", 421)
	s.login("alice@acme").Command(200, "NOOP")
	s.know()
	for status := 0; status != http.StatusOK; status, _ = get(t, s.srv, "/readyz") {
	}
	s.login("alice@team-a_shop").Command(200, "NOOP")
	c := ftptest.Dial(t, s.srv.Addr().String())
	c.Command(220, "HOST shop.team-a.example")
	c.Login("alice", servicetest.Password)
	s.refused("nobody", 530)
}

// A changed Secret changes the password, a refused version keeps the previous one, and other tenants are not touched.
func TestChangedResources(t *testing.T) {
	s := newResourceSite(t, func(*config.Config) {})
	s.know()
	till := s.srv.active.Load().cfg.Tenants["team-a_till"]
	hash, err := passwordhash.New("another password")
	must.OK(t, err)
	alice := s.login("alice@team-a_shop")
	s.change(func() { s.putPassword("alice", hash) })
	s.await(t, "alice", func(*config.ResourceOutcome) bool {
		u := s.srv.active.Load().cfg.Tenants["team-a_shop"].Users["alice"]
		return u.PasswordHash.Reveal() == hash
	})
	s.refused("alice@team-a_shop", 530)
	alice.Command(200, "NOOP")

	for name, broken := range map[string]map[string]any{
		"check":  {"bucket": s.shop["bucket"], "idle": "x"},
		"border": {"bucket": "another-bucket"},
		"server": {"bucket": s.shop["bucket"], "languages": []string{"tlh"}},
	} {
		s.change(func() { s.putTenant("shop", broken) })
		o := s.await(t, "shop", s.isIn(s.tenants["shop"]))
		if o.Reason == config.ResourceAccepted || o.Message == "" || o.Used == nil {
			t.Errorf("%s: %+v", name, o)
		}
		c := ftptest.Dial(t, s.srv.Addr().String())
		c.Login("alice@team-a_shop", "another password")
	}
	s.change(func() { s.putTenant("shop", s.shop) })
	if o := s.await(t, "shop", s.isIn(s.tenants["shop"])); o.Reason != config.ResourceAccepted {
		t.Errorf("%+v", o)
	}
	alice.Command(200, "NOOP")
	if s.srv.active.Load().cfg.Tenants["team-a_till"] != till {
		t.Error("another tenant was replaced")
	}
}

// A certificate that does not belong to its key is refused alone. Everything else in the same change is applied.
func TestUnusableResource(t *testing.T) {
	s := newResourceSite(t, func(*config.Config) {})
	s.know()
	template := &x509.Certificate{DNSNames: []string{"shop.team-a.example"}}
	certificate, _ := must.Certificate(t, template)
	_, key := must.Certificate(t, template)
	s.change(func() {
		s.secrets["team-a/tls"] = map[string][]byte{"tls.crt": []byte(certificate), "tls.key": []byte(key)}
		reference, spec := map[string]any{"name": "tls"}, maps.Clone(s.shop)
		spec["tls"] = map[string]any{"cert_secret": reference, "key_secret": reference}
		s.putTenant("shop", spec)
		s.putUser("carol", map[string]any{"tenant": "till", "password_hash_secret": map[string]any{"name": "bob"}})
	})
	s.await(t, "carol", s.isIn(s.users["carol"]))
	o := s.await(t, "shop", s.isIn(s.tenants["shop"]))
	const want = "private key does not match"
	if o.Reason != config.ResourceInvalid || !strings.Contains(o.Message, want) || o.Used == nil {
		t.Errorf("%+v", o)
	}
	s.login("carol@team-a_till")
	s.login("alice@team-a_shop")
}

// The check of a resource finds what only the server can find, whatever part of the tenant it is in.
func TestCheckResource(t *testing.T) {
	s, cfg := simulated(t)
	srv, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()})
	must.OK(t, err)
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage")
	must.WriteFile(t, garbage, "garbage")
	receiver := config.Receiver{URL: "https://127.0.0.1:1/", Secret: value.NewSecret(webhookSecret), CAFile: garbage}
	for name, tc := range map[string]struct {
		tenant config.Tenant
		want   string
	}{
		"valid":       {config.Tenant{}, ""},
		"certificate": {config.Tenant{TLS: config.TenantTLS{CertFile: garbage, KeyFile: garbage}}, garbage},
		"webhook":     {config.Tenant{Webhook: config.Webhook{Receiver: receiver}}, garbage},
		"inspector":   {config.Tenant{Inspect: config.Inspect{Hook: receiver}}, garbage},
		"languages":   {config.Tenant{Languages: []language.Tag{language.MustParse("tlh")}}, "tlh"},
	} {
		tc.tenant.Bucket = cfg.Tenants["acme"].Bucket
		one := *cfg
		one.Tenants = map[string]*config.Tenant{"team-a_shop": &tc.tenant}
		err := srv.checkResource(&one)
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Deleting a user or its tenant ends its sessions like disabling it, and refuses logins. Other sessions continue.
func TestDeletedResources(t *testing.T) {
	s := newResourceSite(t, func(cfg *config.Config) { cfg.Audit.File = yamlconf.StandardOutput })
	s.know()
	const disabled = "This user account is disabled. Please contact the administrator."
	own, alice, bob := s.login("alice@acme"), s.login("alice@team-a_shop"), s.login("bob@team-a_till")
	s.change(func() { delete(s.users, "alice") })
	s.await(t, "alice", isGone)
	if got := alice.Reply(421); got != disabled {
		t.Errorf("a deleted user gets %q", got)
	}
	s.refused("alice@team-a_shop", 530)
	bob.Command(200, "NOOP")
	s.change(func() { delete(s.tenants, "till") })
	s.await(t, "till", isGone)
	if got := bob.Reply(421); got != disabled {
		t.Errorf("a user of a deleted tenant gets %q", got)
	}
	own.Command(200, "NOOP")
	for _, want := range []string{
		`"administrator":"custom resources"`, `"tenants_added":["team-a_shop","team-a_till"]`,
		`"users_removed":["alice@team-a_shop"]`, `"tenants_removed":["team-a_till"]`, `"limit":"user.disabled"`,
	} {
		s.audit.Await(want)
	}
}

// A reload of the files keeps the resources, and so does a refused configuration. A tenant of the files takes what a
// resource has. The source gets the namespaces of each configuration.
func TestReloadKeepsResources(t *testing.T) {
	s := newResourceSite(t, func(*config.Config) {})
	s.know()
	alice := s.login("alice@team-a_shop")
	shop := s.srv.active.Load().cfg.Tenants["team-a_shop"]
	reload(t, s.srv, changed(t, s.cfg, func(next *config.Config) {
		next.Kubernetes.Folder = t.TempDir() // needs a restart
		next.Tenants["acme"].Hosts = nil
	}, "acme"))
	broken := config.Problems{{Message: "broken"}}
	if err := s.srv.Reload(ReloadFiles, func() (*config.Config, error) { return nil, broken }); err == nil {
		t.Error("an invalid configuration was applied")
	}
	if got := s.srv.active.Load().cfg; got.Tenants["team-a_shop"] == nil || len(got.Tenants) != 3 {
		t.Errorf("got the tenants %q", slices.Sorted(maps.Keys(got.Tenants)))
	}
	alice.Command(200, "NOOP")
	s.login("alice@team-a_shop")
	if last := s.configured[len(s.configured)-1]; len(s.configured) != 2 || last.Folder != s.cfg.Kubernetes.Folder {
		t.Errorf("the source was configured with %+v", s.configured)
	}
	reload(t, s.srv, changed(t, s.cfg, func(next *config.Config) { next.Tenants["acme"].Hosts = shop.Hosts }, "acme"))
	if o := s.await(t, "shop", func(*config.ResourceOutcome) bool { return true }); o.Reason != config.ResourceHostTaken {
		t.Errorf("%+v", o)
	}
	alice.Reply(421)
}

// Users in the shared state and custom resources are applied together.
func TestResourcesWithSharedState(t *testing.T) {
	s := newUsersSite(t)
	bucket := s.aws.Bucket(t)
	s.cfg.Kubernetes = config.Kubernetes{
		Folder: t.TempDir(), Namespaces: map[string]*config.Namespace{"team-a": {Buckets: []string{bucket}}},
	}
	source := newMemorySource()
	source.putTenant("shop", map[string]any{"bucket": bucket})
	srv, err := New(t.Context(), s.cfg, Options{AWS: s.aws.AWSConfig(), Resources: source})
	must.OK(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { srv.state.store.Run(ctx, nil) })
	t.Cleanup(func() { stop(); running.Wait() })
	users, resources := srv.follow(ctx)
	<-users
	if isClosed(resources) || !srv.active.Load().cfg.TenantsUnknown {
		t.Error("the resources are known")
	}
	close(source.known)
	<-resources
	s.put(srv, "bob", "disabled: true")
	s.await(srv, "bob")
	source.change(func() { source.putUser("carol", map[string]any{"tenant": "shop", "disabled": true}) })
	source.await(t, "carol", source.isIn(source.users["carol"]))
	cfg := srv.active.Load().cfg
	if len(cfg.Tenants["acme"].Users) != 1 || len(cfg.Tenants["team-a_shop"].Users) != 1 || cfg.TenantsUnknown {
		t.Errorf("got %+v and %+v", cfg.Tenants["acme"], cfg.Tenants["team-a_shop"])
	}
}

// BenchmarkUsersInResources starts a server with 10,000 users in 1,000 tenants that are custom resources, and then
// changes one user at a time. The start may take 5 s and 250 MiB, with what the client of the API server needs:
//
//	go test ./internal/server -run - -bench UsersInResources -benchtime 20x
func BenchmarkUsersInResources(b *testing.B) {
	const tenants, usersOfTenant = 1000, 10
	storage := s3test.Start(b, "sim-aws")
	cfg := servicetest.NewConfig(b, storage)
	cfg.Kubernetes = config.Kubernetes{
		Folder: b.TempDir(), Namespaces: map[string]*config.Namespace{"team-a": {Buckets: []string{"data/*"}}},
	}
	source, hash := newMemorySource(), servicetest.PasswordHash().Reveal()
	spec := func(tenant, home string) map[string]any {
		return map[string]any{"tenant": tenant, "home": home, "password_hash_secret": map[string]any{"name": "alice"}}
	}
	source.putPassword("alice", hash)
	for n := range tenants {
		tenant := fmt.Sprintf("tenant-%04d", n)
		source.putTenant(tenant, map[string]any{"bucket": "data", "prefix": tenant + "/"})
		for i := range usersOfTenant {
			source.putUser(fmt.Sprintf("%s-%d", tenant, i), spec(tenant, "/"))
		}
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, began := heap(), time.Now()
	srv, err := New(b.Context(), cfg, Options{AWS: storage.AWSConfig(), Resources: source})
	must.OK(b, err)
	close(source.known)
	srv.reloadMerged()
	start, used := time.Since(began), heap()-before
	if n := srv.active.Load().cfg.UsersCount(); n != tenants*usersOfTenant+1 {
		b.Fatalf("%d users", n)
	}
	for n := 0; b.Loop(); n++ {
		tenant := fmt.Sprintf("tenant-%04d", n%tenants)
		source.change(func() { source.putUser(tenant+"-0", spec(tenant, fmt.Sprint("/", n))) })
		srv.reloadMerged()
	}
	b.ReportMetric(start.Seconds(), "start-s")
	b.ReportMetric(float64(used)/(1<<20), "heap-MiB")
}

// While changes of resources do not arrive, a problem and a metric say so.
func TestSourceProblem(t *testing.T) {
	s := newResourceSite(t, func(*config.Config) {})
	s.know()
	has := func(problems int, metric string) {
		t.Helper()
		var found []admin.Problem
		for _, p := range s.srv.problems() {
			if p.Subject == "Kubernetes API" {
				found = append(found, p)
			}
		}
		if len(found) != problems || problems > 0 && !strings.Contains(found[0].Text, "no route to host") {
			t.Errorf("problems %+v, want %d", found, problems)
		}
		if _, text := get(t, s.srv, "/metrics"); !strings.Contains(text, "\nbabelftp_kubernetes_up "+metric+"\n") {
			t.Errorf("babelftp_kubernetes_up is not %s", metric)
		}
	}
	has(0, "1")
	s.change(func() { s.problem = errors.New("no route to host") })
	has(1, "0")
	s.change(func() { s.problem = nil })
	has(0, "1")
}
