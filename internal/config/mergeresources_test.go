package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A cluster has resources, Secrets and ConfigMaps for MergeResources.
type fakeCluster struct {
	t          testing.TB
	file       string
	loader     *Loader
	cfg        *Config
	resources  map[string]*Resource // by KIND/NAMESPACE/NAME
	secrets    map[string]map[string][]byte
	configMaps map[string]map[string]string
	version    map[string]int
	check      func(*Config) error
	clock      time.Time
	stopped    bool // all resources have the same time of creation
	uid        int

	merged *Config
	merge  *ResourceMerge
}

// allowAll is a section that allows everything in all namespaces.
const allowAll = `kubernetes: {folder: run, namespaces: {"*": {buckets: ["*"], addresses: [], arns: ["*"]}}}`

// newFakeCluster returns a cluster without resources, for a server with this configuration.
func newFakeCluster(t testing.TB, configuration string) *fakeCluster {
	t.Helper()
	f := &fakeCluster{
		t: t, file: filepath.Join(t.TempDir(), "babelftp.yaml"), resources: map[string]*Resource{},
		secrets: map[string]map[string][]byte{}, configMaps: map[string]map[string]string{}, version: map[string]int{},
		clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	f.loader = NewLoader(f.file, nil)
	f.configure(configuration)
	f.secret("team-a", "login", "password_hash", hash)
	f.secret("team-b", "login", "password_hash", hash)
	return f
}

func (f *fakeCluster) configure(text string) {
	f.t.Helper()
	must.OK(f.t, os.WriteFile(f.file, []byte(text), 0o600))
	cfg, err := f.loader.Load()
	must.OK(f.t, err)
	f.cfg = cfg
}

func (f *fakeCluster) secret(namespace, name string, keysAndValues ...string) {
	data := map[string][]byte{}
	for pair := range slices.Chunk(keysAndValues, 2) {
		data[pair[0]] = []byte(pair[1])
	}
	f.secrets[namespace+"/"+name] = data
	f.version[namespace+"/"+name]++
}

func (f *fakeCluster) Secret(namespace, name string) (map[string][]byte, string, bool) {
	data, ok := f.secrets[namespace+"/"+name]
	return data, fmt.Sprint(f.version[namespace+"/"+name]), ok
}

func (f *fakeCluster) ConfigMap(namespace, name string) (map[string]string, string, bool) {
	data, ok := f.configMaps[namespace+"/"+name]
	return data, "1", ok
}

// jsonOf converts YAML to JSON.
func jsonOf(t testing.TB, text string) []byte {
	t.Helper()
	var spec any
	must.OK(t, yaml.Unmarshal([]byte(text), &spec))
	data, err := json.Marshal(spec)
	must.OK(t, err)
	return data
}

// apply creates or changes a resource, for example "FTPTenant/team-a/acme", one second after the last change.
func (f *fakeCluster) apply(id, spec string) {
	f.t.Helper()
	parts := strings.Split(id, "/")
	if !f.stopped {
		f.clock = f.clock.Add(time.Second)
	}
	r := &Resource{Kind: ResourceKind(parts[0]), Namespace: parts[1], Name: parts[2], Generation: 1, Created: f.clock}
	if old := f.resources[id]; old != nil {
		*r = *old
		r.Generation++
	} else {
		f.uid++
		r.UID = fmt.Sprint(f.uid)
	}
	r.Spec = jsonOf(f.t, spec)
	f.resources[id] = r
}

// tenant applies a tenant, and user a user of it, whose name is the last part of the identifier.
func (f *fakeCluster) tenant(id, spec string) {
	f.t.Helper()
	f.apply("FTPTenant/"+id, spec)
}

func (f *fakeCluster) user(id, tenant string, more ...string) {
	f.t.Helper()
	f.apply("FTPUser/"+id, "{tenant: "+tenant+", password_hash_secret: {name: login}"+
		strings.Join(append([]string{""}, more...), ", ")+"}")
}

// current returns the resources.
func (f *fakeCluster) current() *Resources {
	r := &Resources{References: f, Check: f.check}
	for _, id := range slices.Sorted(maps.Keys(f.resources)) {
		resource := f.resources[id]
		if strings.HasPrefix(id, string(TenantResource)) {
			r.Tenants = append(r.Tenants, resource)
		} else {
			r.Users = append(r.Users, resource)
		}
	}
	return r
}

// run merges the resources.
func (f *fakeCluster) run() *ResourceMerge {
	f.merged, f.merge = f.cfg.MergeResources(f.current(), f.merge)
	return f.merge
}

// restart forgets what the process knows.
func (f *fakeCluster) restart() { f.merge = nil }

// writeStatus writes the versions in use into status.accepted, as the leader does.
func (f *fakeCluster) writeStatus() {
	for _, o := range f.merge.Outcomes {
		id := string(o.Resource.Kind) + "/" + o.Resource.Namespace + "/" + o.Resource.Name
		if r := f.resources[id]; r != nil && o.Used != nil {
			next := *r
			next.Accepted = o.Used
			f.resources[id] = &next
		}
	}
}

// outcome returns the outcome of a resource.
func (f *fakeCluster) outcome(id string) *ResourceOutcome {
	f.t.Helper()
	for _, o := range f.merge.Outcomes {
		if string(o.Resource.Kind)+"/"+o.Resource.Namespace+"/"+o.Resource.Name == id {
			return o
		}
	}
	f.t.Fatalf("no outcome of %s", id)
	return nil
}

// want checks the outcome of a tenant or user: the reason, the generation in use (0 for none) and a part of the
// message.
func (f *fakeCluster) want(id string, reason ResourceReason, generation int64, message string) {
	f.t.Helper()
	o := f.outcome(id)
	used := int64(0)
	if o.Used != nil {
		used = o.Used.Generation
	}
	if o.Reason != reason || used != generation || !strings.Contains(o.Message, message) ||
		message == "" && o.Message != "" {
		f.t.Errorf("%s: got %s, generation %d, %q; want %s, %d, %q", id, o.Reason, used, o.Message, reason, generation, message)
	}
	tenant, exists := f.merged.Tenants[o.Tenant]
	if o.Resource.Kind == UserResource {
		exists = tenant.user(o.User) != nil
	} else if exists {
		exists = tenant.Namespace == o.Resource.Namespace
	}
	if exists != (used > 0) && (reason != ResourceNameTaken || !exists) { // the other one has this name
		f.t.Errorf("%s: in the configuration: %t, want %t", id, exists, used > 0)
	}
}

const (
	tenantA = "FTPTenant/team-a/acme"
	tenantB = "FTPTenant/team-b/beta"
	alice   = "FTPUser/team-a/alice"
)

func TestMergeResources(t *testing.T) {
	f := newFakeCluster(t, allowAll)
	f.tenant("team-a/acme", "{bucket: acme, prefix: in, hosts: [FTP.acme.example], quota: 1GiB}")
	f.user("team-a/alice", "acme", "root: /alice/, quota: 10")
	f.user("team-a/bob", "acme", "name: bob@example.com, disabled: true")
	first := f.run()
	f.want(tenantA, ResourceAccepted, 1, "")
	f.want(alice, ResourceAccepted, 1, "")
	acme := f.merged.Tenants["team-a_acme"]
	if acme.Bucket != "acme" || acme.Prefix != "in/" || acme.Hosts[0] != "ftp.acme.example" || acme.Resume != KeepInterrupted ||
		acme.Users["alice"].Root != "/alice" || acme.Users["alice"].PasswordHash.Reveal() != hash || !acme.Users["bob@example.com"].Disabled {
		t.Errorf("got %+v, %+v", acme, acme.Users["alice"])
	}
	if o := f.outcome("FTPUser/team-a/bob"); o.User != "bob@example.com" || o.Tenant != "team-a_acme" || !o.Disabled {
		t.Errorf("got %+v", o)
	}
	if f.merged.HasHosts() {
		t.Error("a host of a resource changes what HOST means for others")
	}

	// Nothing changed.
	before := f.merged
	second := f.run()
	if f.merged != before || !slices.Equal(first.Outcomes, second.Outcomes) {
		t.Error("a merge without a change returned another result")
	}
	// Another user changed, or the Secret of one.
	f.tenant("team-b/beta", "{bucket: beta}")
	f.user("team-b/carol", "beta")
	f.run()
	beta := f.merged.Tenants["team-b_beta"]
	f.user("team-b/carol", "beta", "home: /x")
	f.run()
	if f.merged.Tenants["team-a_acme"] != acme || f.merged.Tenants["team-b_beta"] == beta {
		t.Error("unexpected tenants changed")
	}
	f.secret("team-a", "login", "password_hash", strings.Replace(hash, "c29", "d29", 1))
	f.run()
	if f.merged.Tenants["team-a_acme"].Users["alice"].PasswordHash.Reveal() == hash {
		t.Error("the new hash is not in use")
	}
	// A reload of the files that changes nothing for tenants keeps them.
	acme = f.merged.Tenants["team-a_acme"]
	f.configure(allowAll + "\nidle_timeout: 10m\n")
	f.run()
	if f.merged.Tenants["team-a_acme"] != acme || f.merged.IdleTimeout != 10*time.Minute {
		t.Error("a reload replaced a tenant that did not change")
	}
	delete(f.resources, alice)
	f.run()
	if f.merged.Tenants["team-a_acme"].Users["alice"] != nil {
		t.Error("the deleted user is still there")
	}
}

// A broken resource affects no other one, and does not replace its last good version.
func TestBrokenResources(t *testing.T) {
	f := newFakeCluster(t, allowAll)
	f.tenant("team-a/acme", "{bucket: acme}")
	f.user("team-a/alice", "acme", "home: /one")
	f.run()
	f.writeStatus()
	f.tenant("team-a/acme", "{bucket: Acme, prefix: /x, users: {a: {}}, listen: 21}")
	f.user("team-a/alice", "acme", "home: two")
	f.run()
	const problems = "spec.users: is not allowed in a custom resource: create an FTPUser for each user\n" // and so on
	f.want(tenantA, ResourceInvalid, 1, "spec.bucket: \"Acme\" is not a valid bucket name: write lower-case letters, digits, - and . only")
	f.want(tenantA, ResourceInvalid, 1, problems)
	f.want(tenantA, ResourceInvalid, 1, "spec.listen: unknown key: correct its name or remove it")
	f.want(alice, ResourceInvalid, 1, `spec.home: "two" is not absolute: begin it with /`)
	f.restart()
	f.run()
	f.want(tenantA, ResourceInvalid, 1, "spec.bucket")
	f.want(alice, ResourceInvalid, 1, "spec.home")
	if home := f.merged.Tenants["team-a_acme"].Users["alice"].Home; home != "/one" {
		t.Errorf("got the home %q of the broken version", home)
	}

	// A Secret that disappears does not take anything away, until the process ends.
	f.tenant("team-a/acme", "{bucket: acme, prefix: y}")
	f.user("team-a/alice", "acme", "home: /three")
	f.run()
	f.writeStatus()
	f.want(alice, ResourceAccepted, 3, "")
	delete(f.secrets, "team-a/login")
	f.run()
	f.want(alice, ResourceSecretNotFound, 3, `spec.password_hash_secret: the Secret "login" does not exist in the namespace team-a`)
	f.configure(allowAll + "\nidle_timeout: 10m\n")
	f.run()
	f.want(alice, ResourceSecretNotFound, 3, "spec.password_hash_secret")
	f.restart()
	f.run()
	f.want(alice, ResourceSecretNotFound, 3, "spec.password_hash_secret")
	info, err := os.Stat(filepath.Join(f.cfg.Kubernetes.Folder, keptFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy of the content: %v, %v", info, err)
	}
	must.OK(t, os.RemoveAll(f.cfg.Kubernetes.Folder)) // a new pod
	f.restart()
	f.run()
	f.want(alice, ResourceSecretNotFound, 0, "spec.password_hash_secret")
	f.secret("team-a", "login", "other", "x")
	f.run()
	f.want(alice, ResourceSecretNotFound, 0, `the Secret "login" has no key "password_hash": add it, or name another one in key`)
	f.secret("team-a", "login", "password_hash", "secret")
	f.run()
	f.want(alice, ResourceInvalid, 0, "spec.password_hash_secret: is not a password hash")
	f.secret("team-a", "login", "password_hash", hash)
	f.run()
	f.want(alice, ResourceAccepted, 3, "")

	// What a namespace may no longer do ends, also for a version that was accepted.
	f.configure(strings.Replace(allowAll, `"*": {`, `team-b: {`, 1))
	f.run()
	f.want(tenantA, ResourceNotAllowed, 0, "the namespace team-a is not watched")
	f.want(alice, ResourceTenantNotAccepted, 0, `spec.tenant: the FTPTenant "acme" is not in use`)
	delete(f.resources, tenantA)
	f.run()
	f.want(alice, ResourceTenantNotFound, 0, `spec.tenant: the FTPTenant "acme" does not exist in the namespace team-a`)
}

// What only the server finds makes only one resource invalid.
func TestResourceCheck(t *testing.T) {
	f := newFakeCluster(t, allowAll)
	calls := 0
	f.check = func(c *Config) error {
		calls++
		for _, tenant := range c.Tenants {
			for name := range tenant.Users {
				if strings.HasPrefix(name, "bad") {
					return errors.New("bad user")
				}
			}
			if tenant.Bucket == "broken" {
				return errors.New("broken bucket")
			}
		}
		return nil
	}
	f.tenant("team-a/acme", "{bucket: acme}")
	f.tenant("team-b/beta", "{bucket: broken}")
	for _, name := range []string{"alice", "bad", "carol"} {
		f.user("team-a/"+name, "acme")
	}
	f.run()
	f.want(tenantA, ResourceAccepted, 1, "")
	f.want(tenantB, ResourceInvalid, 0, "broken bucket")
	f.want(alice, ResourceAccepted, 1, "")
	f.want("FTPUser/team-a/bad", ResourceInvalid, 0, "bad user")
	before := calls
	if f.run(); calls != before {
		t.Errorf("checked %d times again without a change", calls-before)
	}
	f.tenant("team-a/acme", "{bucket: broken}")
	f.run()
	f.want(tenantA, ResourceInvalid, 1, "broken bucket")
	f.want(alice, ResourceAccepted, 1, "")
}
