package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/kubeapi"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// testTimeout limits what a test waits for.
const testTimeout = 20 * time.Second

// A runningSource is a Source that runs until the end of the test, or until stop.
type runningSource struct {
	*Source

	t    *testing.T
	log  *logBuffer
	stop func() // waits for the end of Run
}

// run starts a Source for these namespaces.
func run(t *testing.T, rc *rest.Config, folder string, opts Options, namespaces ...string) *runningSource {
	t.Helper()
	log := &logBuffer{}
	opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	s, err := New(rc, opts)
	must.OK(t, err)
	r := &runningSource{Source: s, t: t, log: log}
	r.configure(folder, namespaces...)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx, nil)
	}()
	r.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(r.stop)
	return r
}

func (r *runningSource) configure(folder string, namespaces ...string) {
	k := &config.Kubernetes{Folder: folder, Namespaces: map[string]*config.Namespace{}}
	for _, name := range namespaces {
		k.Namespaces[name] = &config.Namespace{}
	}
	r.Configure(k)
}

// waitKnown waits until the resources are known.
func (r *runningSource) waitKnown() {
	r.t.Helper()
	select {
	case <-r.Known():
	case <-time.After(testTimeout):
		r.t.Fatalf("resources are not known; log:\n%s", r.log)
	}
}

// waitFor waits until Current is as wanted; see describe.
func (r *runningSource) waitFor(want string) {
	r.t.Helper()
	deadline := time.After(testTimeout)
	for {
		got := describe(r.Current())
		if got == want {
			return
		}
		select {
		case <-r.Changed():
		case <-deadline:
			r.t.Fatalf("resources are\n%s\nwant\n%s\nlog:\n%s", got, want, r.log)
		}
	}
}

// waitLog waits until the log contains a text.
func (r *runningSource) waitLog(text string) {
	r.t.Helper()
	deadline := time.After(testTimeout)
	for {
		more := r.log.more()
		if strings.Contains(r.log.String(), text) {
			return
		}
		select {
		case <-more:
		case <-deadline:
			r.t.Fatalf("the log does not contain %q:\n%s", text, r.log)
		}
	}
}

// describe lists resources as namespace/name, the value v of their specs, and what they refer to with the value of the
// key k: "a/acme 1 creds=x".
func describe(all *config.Resources) string {
	var lines []string
	var finder config.ReferenceFinder
	for _, r := range slices.Concat(all.Tenants, all.Users) {
		var spec struct{ V any }
		_ = json.Unmarshal(r.Spec, &spec)
		line := fmt.Sprintf("%s/%s %v", r.Namespace, r.Name, spec.V)
		secrets, configMaps := finder.ReferencesOf(r.Kind, r.Spec)
		for _, name := range secrets {
			data, _, ok := all.References.Secret(r.Namespace, name)
			line += fmt.Sprintf(" %s=%s", name, value(string(data["k"]), ok))
		}
		for _, name := range configMaps {
			data, _, ok := all.References.ConfigMap(r.Namespace, name)
			line += fmt.Sprintf(" %s=%s", name, value(data["k"], ok))
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

func value(text string, ok bool) string {
	if !ok {
		return "-"
	}
	return text
}

// object returns a resource in YAML.
func object(kind, namespace, name, spec string) string {
	return fmt.Sprintf("\n---\n{apiVersion: babelftp.io/v1alpha1, kind: %s,"+
		" metadata: {namespace: %s, name: %s}, spec: %s}\n", kind, namespace, name, spec)
}

func tenant(namespace, name, spec string) string { return object("FTPTenant", namespace, name, spec) }
func user(namespace, name string) string         { return object("FTPUser", namespace, name, "{v: 1}") }

// secret returns a Secret in YAML whose key k has a value in base64.
func secret(namespace, name, encoded string) string {
	return fmt.Sprintf("\n---\n{apiVersion: v1, kind: Secret, type: Opaque,"+
		" metadata: {namespace: %s, name: %s}, data: {k: %s}}\n", namespace, name, encoded)
}

const (
	one = "b25l" // "one" in base64
	two = "dHdv"
)

// path returns the path of an object in the namespace a.
func path(plural, name string) string {
	if plural == secrets || plural == configMaps {
		return "/api/v1/namespaces/a/" + plural + "/" + name
	}
	return "/apis/babelftp.io/v1alpha1/namespaces/a/" + plural + "/" + name
}

func TestChanges(t *testing.T) {
	api := kubeapi.New(t)
	api.Apply(tenant("a", "acme", "{v: 1}") + user("b", "alice"))
	s := run(t, api.Config(), "", Options{}, "a")
	s.waitKnown()
	s.waitFor("a/acme 1")
	api.Apply(user("a", "bob"))
	s.waitFor("a/acme 1, a/bob 1")
	before := s.Current()
	must.OK(t, api.Patch(path(Users, "bob"), `{"spec": {"v": 2}}`))
	s.waitFor("a/acme 1, a/bob 2")
	after := s.Current()
	if before.Tenants[0] != after.Tenants[0] {
		t.Error("the tenant has a new pointer, but has not changed")
	}
	if got := after.Users[0]; got.Generation != 2 || got.UID == "" || got.Created.IsZero() || got.Kind != config.UserResource {
		t.Errorf("user %+v", got)
	}
	if before.Users[0].Generation != 1 {
		t.Error("a resource that Current returned has changed")
	}
	must.OK(t, api.Delete(path(Users, "bob")))
	s.waitFor("a/acme 1")
	must.OK(t, api.Patch(path(Tenants, "acme"), `{"metadata": {"finalizers": ["example.com/wait"]}}`))
	must.OK(t, api.Delete(path(Tenants, "acme")))
	s.waitFor("")
	must.OK(t, api.Patch(path(Tenants, "acme"), `{"metadata": {"finalizers": null}}`))
	api.Apply(tenant("a", "acme", "{v: 2}"))
	s.waitFor("a/acme 2")
}

// TestStatus checks that a resource changes with its accepted spec, and not with the numbers in its status.
func TestStatus(t *testing.T) {
	api := kubeapi.New(t)
	api.Apply(tenant("a", "acme", "{v: 1, s3: {secret_access_key_secret: {name: new}}}") + user("a", "bob") + secret("a", "old", one))
	s := run(t, api.Config(), "", Options{}, "a")
	s.waitKnown()
	s.waitFor("a/acme 1 new=-, a/bob 1")
	before := s.Current()
	must.OK(t, api.Patch(path(Tenants, "acme")+"/status", `{"status": {"users": 7}}`))
	must.OK(t, api.Patch(path(Users, "bob"), `{"spec": {"v": 2}}`))
	s.waitFor("a/acme 1 new=-, a/bob 2")
	waitStatus := func(text string) {
		t.Helper()
		for end := time.Now().Add(testTimeout); !strings.Contains(s.statusOf("acme"), text); runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("status is %s, want %s", s.statusOf("acme"), text)
			}
		}
	}
	waitStatus(`"users":7`)
	if s.Current().Tenants[0] != before.Tenants[0] {
		t.Error("a number in the status has changed the resource")
	}
	must.OK(t, api.Patch(path(Tenants, "acme")+"/status",
		`{"status": {"conditions": "not a list", "accepted": {"generation": 1, "spec": {"v": 0, "s3": {"secret_access_key_secret": {"name": "old"}}}}}}`))
	waitStatus(`"accepted"`)
	for end := time.Now().Add(testTimeout); ; runtime.Gosched() {
		now := s.Current()
		data, _, ok := now.References.Secret("a", "old")
		if accepted := now.Tenants[0].Accepted; accepted != nil && ok {
			if accepted.Generation != 1 || !strings.Contains(string(accepted.Spec), `"v":0`) ||
				string(data["k"]) != "one" {
				t.Errorf("accepted %+v, secret %s", accepted, data)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("the Secret of the accepted spec is not known")
		}
	}
}

// statusOf returns the status of a tenant in the namespace a.
func (s *Source) statusOf(name string) string {
	if o := s.object(config.TenantResource, "a", name); o != nil {
		return string(o.Status)
	}
	return ""
}

func TestReferences(t *testing.T) {
	api := kubeapi.New(t)
	api.Apply(secret("a", "first", one) + secret("a", "spare", one) + secret("b", "other", two) +
		tenant("a", "acme", "{v: 1, s3: {secret_access_key_secret: {name: first}}}"))
	s := run(t, api.Config(), "", Options{}, "a", "b")
	s.waitKnown()
	s.waitFor("a/acme 1 first=one")

	t.Run("rotated", func(t *testing.T) {
		_, before, _ := s.Current().References.Secret("a", "first")
		api.Apply(secret("a", "first", two))
		s.waitFor("a/acme 1 first=two")
		_, after, _ := s.Current().References.Secret("a", "first")
		must.OK(t, api.Patch(path(secrets, "first"), `{"metadata": {"labels": {"x": "y"}}}`))
		must.OK(t, api.Patch(path(Tenants, "acme"), `{"spec": {"v": 2}}`))
		s.waitFor("a/acme 2 first=two")
		_, labeled, _ := s.Current().References.Secret("a", "first")
		if before == after || after != labeled {
			t.Errorf("versions %s, %s after a change, and %s after a label", before, after, labeled)
		}
	})
	t.Run("stub", func(t *testing.T) {
		if got := s.kept("a"); got["spare"] != nil || !slices.Contains(slices.Collect(maps.Keys(got)), "spare") {
			t.Errorf("content of a Secret that nothing refers to: %v", got)
		}
		api.Apply(tenant("a", "acme", "{v: 3, s3: {secret_access_key_secret: {name: spare}}}"))
		s.waitFor("a/acme 3 spare=one")
		if got := s.kept("a"); got["first"] != nil {
			t.Errorf("content of a Secret that nothing refers to any more: %v", got)
		}
	})
	t.Run("created after the resource", func(t *testing.T) {
		api.Apply(tenant("a", "acme", "{v: 4, s3: {secret_access_key_secret: {name: late}}, greeting_config_map: {name: late}}"))
		s.waitFor("a/acme 4 late=- late=-")
		api.Apply(secret("a", "late", one))
		api.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: a, name: late}, data: {k: text}}")
		s.waitFor("a/acme 4 late=one late=text")
		must.OK(t, api.Delete(path(secrets, "late")))
		must.OK(t, api.Patch(path(configMaps, "late"), `{"data": {"k": "other"}}`))
		s.waitFor("a/acme 4 late=- late=other")
	})
	t.Run("of another type", func(t *testing.T) {
		api.Apply("{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, " +
			"metadata: {namespace: a, name: token}, data: {k: " + one + "}}")
		api.Apply(tenant("a", "acme", "{v: 5, s3: {secret_access_key_secret: {name: token}}}"))
		s.waitFor("a/acme 5 token=-")
	})
	t.Run("of another namespace", func(t *testing.T) {
		api.Apply(tenant("a", "acme", "{v: 6, s3: {secret_access_key_secret: {name: other}}}"))
		s.waitFor("a/acme 6 other=-")
		if got := s.kept("b"); got["other"] != nil {
			t.Errorf("content of a Secret in another namespace: %v", got)
		}
	})
}

// kept returns the Secrets in the store of a namespace.
func (s *Source) kept(namespace string) map[string]map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]map[string][]byte{}
	for k, c := range s.scopes[namespace].secrets.objects {
		found[k.name] = c.Secret
	}
	return found
}

// TestSecretBeforeResource checks that a resource never appears without a Secret that was created before it, although
// their watches are not in step.
func TestSecretBeforeResource(t *testing.T) {
	api := kubeapi.New(t)
	s := run(t, api.Config(), "", Options{}, "*")
	s.waitKnown()
	want := ""
	for i := range 50 {
		name := fmt.Sprintf("t%02d", i)
		api.Apply(secret("a", name, one) + tenant("a", name, "{v: 1, s3: {secret_access_key_secret: {name: "+name+"}}}"))
		for end := time.Now().Add(testTimeout); ; runtime.Gosched() {
			got := describe(s.Current())
			if got != want {
				want = strings.TrimPrefix(want+", a/"+name+" 1 "+name+"=one", ", ")
				if got != want {
					t.Fatalf("resources are %s, want %s", got, want)
				}
				break
			}
			if time.Now().After(end) {
				t.Fatal("the tenant does not appear")
			}
		}
	}
}

func TestNamespaces(t *testing.T) {
	api := kubeapi.New(t)
	api.Apply(secret("a", "x", one) + tenant("a", "t", "{v: 1, s3: {secret_access_key_secret: {name: x}}}") +
		tenant("b", "t", "{v: 2}") + tenant("c", "t", "{v: 3}"))
	s := run(t, api.Config(), "", Options{}, "a")
	s.waitKnown()
	s.waitFor("a/t 1 x=one")
	s.configure("", "a", "b")
	s.waitFor("a/t 1 x=one, b/t 2")
	first := s.Current().Tenants[0]
	s.configure("", "*")
	s.waitFor("a/t 1 x=one, b/t 2, c/t 3")
	s.configure("", "a")
	s.waitFor("a/t 1 x=one")
	if s.Current().Tenants[0] != first {
		t.Error("a tenant whose namespace is still watched has a new pointer")
	}
	api.Apply(tenant("a", "t", "{v: 4}"))
	s.waitFor("a/t 4")
	s.configure("")
	s.waitFor("")
	s.Configure(nil)
	s.waitFor("")
}

// TestForbidden checks that a namespace without permission does not affect the others.
func TestForbidden(t *testing.T) {
	api := kubeapi.New(t)
	api.Apply(tenant("a", "t", "{v: 1}") + tenant("b", "t", "{v: 2, s3: {secret_access_key_secret: {name: x}}}") + secret("b", "x", one))
	api.Forbid("/apis/babelftp.io/v1alpha1/namespaces/a", "/api/v1/namespaces/b/secrets")
	s := run(t, api.Config(), "", Options{}, "a", "b")
	s.waitKnown()
	s.waitFor("b/t 2 x=-")
	if _, err := s.Problem(); !apierrors.IsForbidden(err) {
		t.Errorf("problem %v without permission", err)
	}
	s.waitLog("resources cannot be read; those already known stay in use\" namespace=a resource=ftptenants")
	api.Forbid()
	s.waitFor("a/t 1, b/t 2 x=one")
	for end := time.Now().Add(testTimeout); ; runtime.Gosched() {
		_, err := s.Problem()
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("a problem after all permissions were given: %v", err)
		}
	}
	s.waitLog("resources can be read again\" namespace=a resource=ftptenants")
	api.Forbid("/apis/babelftp.io/v1alpha1/namespaces/a", "/api/v1/namespaces/b/secrets")
	api.Apply(tenant("a", "t", "{v: 3}") + tenant("b", "t", "{v: 4}"))
	s.waitFor("a/t 1, b/t 4")
	if n := strings.Count(s.log.String(), "not available"); n > 0 {
		t.Errorf("a refusal was logged as an outage %d times:\n%s", n, s.log)
	}
}

// TestInvalidObjects checks that an object with a spec or status of the wrong type does not hide the others.
func TestInvalidObjects(t *testing.T) {
	api := kubeapi.New(t)
	api.Apply(tenant("a", "bad", "[1, 2]") + tenant("a", "empty", "null") + tenant("a", "good", "{v: 1}"))
	must.OK(t, api.Patch(path(Tenants, "bad")+"/status", `{"status": "text"}`))
	s := run(t, api.Config(), "", Options{}, "a")
	s.waitKnown()
	s.waitFor("a/bad <nil>, a/empty <nil>, a/good 1")
	api.Apply(tenant("a", "bad", "text") + tenant("a", "good", "{v: 2}"))
	must.OK(t, api.Patch(path(Tenants, "good")+"/status", `{"status": {"accepted": 3}}`))
	s.waitFor("a/bad <nil>, a/empty <nil>, a/good 2")
}

// TestOutage checks that the resources stay known while the API server is away, and are correct afterwards.
func TestOutage(t *testing.T) {
	api := kubeapi.New(t)
	api.Apply(tenant("a", "t", "{v: 1}") + user("a", "gone"))
	s := run(t, api.Config(), "", Options{}, "a")
	s.waitKnown()
	s.waitFor("a/t 1, a/gone 1")
	same := s.Current().Tenants[0]
	api.Stop()
	s.waitLog("API server not available")
	if since, err := s.Problem(); err == nil || since.IsZero() {
		t.Errorf("problem %v since %s during an outage", err, since)
	}
	must.OK(t, api.Delete(path(Users, "gone")))
	api.Apply(user("a", "new"))
	s.waitFor("a/t 1, a/gone 1")
	api.Start()
	s.waitFor("a/t 1, a/new 1")
	if s.Current().Tenants[0] != same {
		t.Error("the tenant has a new pointer after an outage")
	}
	s.waitLog("API server available again")
	if n := strings.Count(s.log.String(), "not available"); n != 1 {
		t.Errorf("the outage was logged %d times:\n%s", n, s.log)
	}
}

// TestGone checks that the objects are listed again if the API server has forgotten the changes since.
func TestGone(t *testing.T) {
	api := kubeapi.New(t)
	api.Apply(tenant("a", "t", "{v: 1, s3: {secret_access_key_secret: {name: x}}}") + tenant("a", "gone", "{v: 1}") + secret("a", "x", one))
	s := run(t, api.Config(), "", Options{}, "a")
	s.waitKnown()
	s.waitFor("a/gone 1, a/t 1 x=one")
	api.Stop()
	must.OK(t, api.Delete(path(Tenants, "gone")))
	api.Apply(secret("a", "x", two))
	api.Compact()
	api.Start()
	s.waitFor("a/t 1 x=two")
	api.Apply(tenant("a", "t", "{v: 2}"))
	s.waitFor("a/t 2")
}

// TestCopy checks starts without the API server.
func TestCopy(t *testing.T) {
	api := kubeapi.New(t)
	folder := filepath.Join(t.TempDir(), "kubernetes")
	name := filepath.Join(folder, copyName)
	api.Apply(tenant("a", "t", "{v: 1, s3: {secret_access_key_secret: {name: x}}, greeting_config_map: {name: y}}") +
		secret("a", "x", one) + secret("a", "spare", two))
	api.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: a, name: y}, data: {k: text}}")
	const all = "a/t 1 x=one y=text"
	s := run(t, api.Config(), folder, Options{}, "a", "b")
	s.waitKnown()
	s.stop()
	info, err := os.Stat(name)
	must.OK(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the copy: %v", info.Mode())
	}
	saved, err := os.ReadFile(name)
	must.OK(t, err)
	if strings.Contains(string(saved), two) {
		t.Errorf("the copy contains a Secret that nothing refers to:\n%s", saved)
	}

	api.Stop()
	brief := Options{patience: time.Millisecond}
	t.Run("restart", func(t *testing.T) {
		s := run(t, api.Config(), folder, brief, "a", "b")
		s.waitKnown()
		s.waitFor(all)
		s.waitLog("using the copy of the resources")
		s.configure(folder, "a") // reload during the outage
		s.stop()
		again, err := os.ReadFile(name)
		must.OK(t, err)
		if len(again) == 0 {
			t.Error("the copy is empty")
		}
	})
	must.OK(t, os.WriteFile(name, saved, 0o600))
	bad := map[string]string{
		"damaged":                 string(saved[:len(saved)-20]),
		"empty":                   "",
		"of another API server":   strings.Replace(string(saved), api.Config().Host, "https://other", 1),
		"of another format":       strings.Replace(string(saved), copyFormat, "other", 1),
		"with an unknown value":   strings.Replace(string(saved), `{"Resource":`, `{"Other":`, 1),
		"with a value of no type": strings.Replace(string(saved), `"Generation":1`, `"Generation":"x"`, 1),
	}
	for title, content := range bad {
		t.Run(title, func(t *testing.T) {
			other := t.TempDir()
			must.OK(t, os.WriteFile(filepath.Join(other, copyName), []byte(content), 0o600))
			s := run(t, api.Config(), other, brief, "a")
			s.waitLog("copy of Kubernetes resources not usable")
			s.waitLog("there is no copy of the resources")
			select {
			case <-s.Known():
				t.Error("the resources are known")
			default:
			}
			s.stop()
			now, err := os.ReadFile(filepath.Join(other, copyName))
			must.OK(t, err)
			if string(now) != content {
				t.Error("the copy was replaced by an incomplete state")
			}
		})
	}
	t.Run("without", func(t *testing.T) {
		s := run(t, api.Config(), t.TempDir(), brief, "a")
		s.waitLog("there is no copy of the resources")
		api.Start()
		defer api.Stop()
		s.waitKnown()
		s.waitFor(all)
	})
	t.Run("API server returns", func(t *testing.T) {
		s := run(t, api.Config(), folder, Options{patience: time.Millisecond, saveEvery: 5 * time.Millisecond}, "a")
		s.waitKnown()
		s.waitFor(all)
		same := s.Current().Tenants[0]
		api.Apply(user("a", "new"))
		api.Start()
		s.waitFor(all + ", a/new 1")
		if s.Current().Tenants[0] != same {
			t.Error("the tenant of the copy has a new pointer, but has not changed")
		}
		for end := time.Now().Add(testTimeout); ; runtime.Gosched() {
			if now, err := os.ReadFile(name); err == nil && strings.Contains(string(now), `"Name":"new"`) {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the change is not in the copy")
			}
		}
	})
	t.Run("not writable", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		must.OK(t, os.WriteFile(file, nil, 0o600))
		s := run(t, api.Config(), file, Options{saveEvery: time.Millisecond}, "a")
		s.waitKnown()
		s.waitLog("writing the copy of Kubernetes resources failed")
		s.waitFor(all + ", a/new 1")
		s.stop()
		if n := strings.Count(s.log.String(), "writing the copy"); n != 1 {
			t.Errorf("the error was logged %d times:\n%s", n, s.log)
		}
	})
}

// TestSilentServer checks a start with an API server that accepts requests and never responds.
func TestSilentServer(t *testing.T) {
	end := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer silent.Close()
	defer close(end)
	folder := t.TempDir()
	must.OK(t, writeCopy(filepath.Join(folder, copyName), silent.URL, &snapshot{
		namespaces: []string{""},
		resources: []*config.Resource{
			{Kind: config.TenantResource, Namespace: "a", Name: "t", Spec: []byte(`{"v": 1}`)},
		},
	}))
	s := run(t, &rest.Config{Host: silent.URL}, folder, Options{patience: time.Millisecond}, "a")
	s.waitKnown()
	s.waitFor("a/t 1")
}

func TestNoNamespaces(t *testing.T) {
	s := run(t, &rest.Config{Host: "http://127.0.0.1:1"}, "", Options{})
	s.waitKnown()
	s.waitFor("")
}

func TestInvalidConfig(t *testing.T) {
	if _, err := New(&rest.Config{Host: "http://%zz"}, Options{}); err == nil {
		t.Error("an invalid address was accepted")
	}
}

// A logBuffer is a log that tests can wait for.
type logBuffer struct {
	mu      sync.Mutex
	text    strings.Builder
	waiting []chan struct{}
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.waiting {
		close(c)
	}
	l.waiting = nil
	return l.text.Write(p)
}

// more returns a channel that the next write closes.
func (l *logBuffer) more() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan struct{})
	l.waiting = append(l.waiting, c)
	return c
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
