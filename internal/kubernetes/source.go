package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/server"
)

const (
	// patience limits the time that a start waits for the API server before it uses the copy.
	patience = 5 * time.Second
	// saveEvery is the least time between two writes of the copy.
	saveEvery = 10 * time.Second
)

// Options holds the settings of a [Source] that are not in the configuration.
type Options struct {
	// Namespace is the namespace of the release, which has the Lease of the leader.
	Namespace string

	// Identity is the name of this replica among those that want to be the leader: the name of its pod.
	Identity string

	// Logger is the log. The default discards everything.
	Logger *slog.Logger

	// For tests: these replace the constants with the same names.
	patience, saveEvery time.Duration
}

// A Source follows the custom resources of the watched namespaces. It implements [server.ResourceSource].
//
// For each watched namespace there is a scope with four reflectors, the part of an informer that lists and watches.
// They write into the scope instead of a cache of their own, so that objects are not kept twice, and a Secret is kept
// or dropped under the same lock that guards what refers to it. Secrets and ConfigMaps are listed after the resources,
// when it is known which of them are needed.
//
// A new version of a resource becomes part of Current when everything it refers to was read.
type Source struct {
	opts   Options
	log    *slog.Logger
	host   string              // URL of the API server
	client clientset.Interface // Secrets, ConfigMaps, Leases and Events
	custom rest.Interface      // FTPTenants and FTPUsers

	known   chan struct{}
	changed chan struct{}
	wake    chan struct{} // Run must look at the state below
	missing workqueue.TypedRateLimitingInterface[missing]

	reporter *reporter

	mu        sync.Mutex
	wanted    *config.Kubernetes // of the last Configure
	scopes    map[string]*scope  // by namespace; "" is all namespaces
	finder    config.ReferenceFinder
	remember  *snapshot         // the copy, until the API server or patience has ended
	current   *config.Resources // nil after a change
	isKnown   bool
	unsaved   bool
	away      map[*collection]bool // collections that cannot reach the API server
	unsavable bool                 // the last write of the copy has failed
}

var _ server.ResourceSource = (*Source)(nil)

// New returns a Source that connects to the API server of rc.
func New(rc *rest.Config, opts Options) (*Source, error) {
	rc = rest.CopyConfig(rc)
	if rc.QPS == 0 {
		rc.QPS = -1 // the API server limits requests fairly itself, and the leader limits its writes
	}
	client, err := clientset.NewForConfig(rc)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	gv := groupVersion()
	rc.GroupVersion, rc.APIPath = &gv, "/apis"
	rc.NegotiatedSerializer = serializer.NewCodecFactory(newScheme()).WithoutConversion()
	custom, err := rest.RESTClientFor(rc)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	opts.patience, opts.saveEvery = cmp.Or(opts.patience, patience), cmp.Or(opts.saveEvery, saveEvery)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Source{
		opts: opts, log: opts.Logger, host: rc.Host, client: client, custom: custom,
		known: make(chan struct{}), changed: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		missing: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[missing](fetchAgain, maxFetchAgain)),
		wanted: &config.Kubernetes{}, scopes: map[string]*scope{}, away: map[*collection]bool{},
	}
	s.reporter = newReporter(reporterOptions{
		client: client, namespace: opts.Namespace, identity: opts.Identity, log: s.log,
		object: s.object, put: s.putStatus,
	})
	return s, nil
}

// Configure implements [server.ResourceSource].
func (s *Source) Configure(k *config.Kubernetes) {
	if k == nil {
		k = &config.Kubernetes{}
	}
	s.mu.Lock()
	s.wanted = k
	s.mu.Unlock()
	notify(s.wake)
}

// Known implements [server.ResourceSource].
func (s *Source) Known() <-chan struct{} { return s.known }

// Changed implements [server.ResourceSource].
func (s *Source) Changed() <-chan struct{} { return s.changed }

// Problem implements [server.ResourceSource].
func (s *Source) Problem() (since time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sc := range s.scopes {
		for _, c := range sc.running {
			if c.problem != nil && (err == nil || c.since.Before(since)) {
				since, err = c.since, c.problem
			}
		}
	}
	return since, err
}

// Current implements [server.ResourceSource].
func (s *Source) Current() *config.Resources {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		all := s.snapshot()
		s.current = &config.Resources{References: all}
		for _, r := range all.resources {
			if r.Kind == config.TenantResource {
				s.current.Tenants = append(s.current.Tenants, r)
			} else {
				s.current.Users = append(s.current.Users, r)
			}
		}
	}
	return s.current
}

// object returns a resource as the watch has shown it last, or nil. The object must not be changed.
func (s *Source) object(kind config.ResourceKind, namespace, name string) *Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, within := range []string{namespace, ""} {
		if sc := s.scopes[within]; sc != nil {
			if e := sc.of(kind).all[key{namespace, name}]; e != nil {
				return e.object
			}
		}
	}
	return nil
}

// putStatus replaces the status of a resource.
func (s *Source) putStatus(ctx context.Context, kind config.ResourceKind, o *Object) (*Object, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	plural := Users
	if kind == config.TenantResource {
		plural = Tenants
	}
	text, err = s.custom.Put().Namespace(o.Namespace).Resource(plural).Name(o.Name).SubResource("status").
		SetHeader("Content-Type", "application/json").Body(text).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	result := &Object{}
	return result, json.Unmarshal(text, result)
}

// Run implements [server.ResourceSource].
func (s *Source) Run(ctx context.Context, srv *server.Server) {
	s.mu.Lock()
	s.remember = s.load(s.wanted.Folder)
	s.mu.Unlock()
	var group sync.WaitGroup
	for range fetchers {
		start(&group, func() { s.fetch(ctx) })
	}
	start(&group, func() { s.reporter.Run(ctx, srv) })
	impatient, save := time.NewTimer(s.opts.patience), time.NewTimer(s.opts.saveEvery)
	defer impatient.Stop()
	defer save.Stop()
	for ctx.Err() == nil {
		s.follow(ctx, &group)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-impatient.C:
			s.giveUpWaiting()
		case <-save.C:
			s.save()
			save.Reset(s.opts.saveEvery)
		}
	}
	s.save() // before the end of the reporter, which may wait for the API server
	s.missing.ShutDown()
	group.Wait()
}

// start runs work in a goroutine of the group.
func start(group *sync.WaitGroup, work func()) {
	group.Add(1)
	panics.Go(func() {
		defer group.Done()
		work()
	})
}

// follow starts and stops scopes as the configuration wants, and the reflectors of scopes.
func (s *Source) follow(ctx context.Context, group *sync.WaitGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := map[string]bool{}
	for namespace := range s.wanted.Namespaces {
		wanted[namespace] = true
	}
	if wanted[config.OtherNamespaces] {
		wanted = map[string]bool{"": true}
	}
	for namespace := range wanted {
		if s.scopes[namespace] == nil {
			s.add(newScope(s, namespace))
		}
	}
	for namespace, sc := range s.scopes {
		if !wanted[namespace] {
			sc.close()
			delete(s.scopes, namespace)
			s.touch()
		}
	}
	for _, sc := range s.scopes {
		sc.run(ctx, group)
	}
	s.settle()
}

// add adds a scope. What the copy or another scope knows of its namespace stays in use until the API server responds.
func (s *Source) add(sc *scope) {
	if s.remember != nil {
		sc.seed(s.remember)
	}
	sc.seed(s.snapshot())
	s.scopes[sc.namespace] = sc
	if sc.seeded && s.isKnown {
		sc.complete()
	}
}

// settle closes the channel of Known if all scopes are complete. The caller holds mu.
func (s *Source) settle() {
	if s.isKnown || !s.allDone() {
		return
	}
	s.isKnown, s.remember = true, nil
	close(s.known)
}

func (s *Source) allDone() bool {
	for _, sc := range s.scopes {
		if !sc.done {
			return false
		}
	}
	return true
}

// giveUpWaiting uses the copy if the API server has not responded for all scopes.
func (s *Source) giveUpWaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isKnown {
		return
	}
	if s.remember == nil {
		s.log.Warn("no response of the Kubernetes API server, and there is no copy of the resources")
		return
	}
	s.log.Warn("no response of the Kubernetes API server; using the copy of the resources",
		"saved", s.remember.saved, "resources", len(s.remember.resources))
	for _, sc := range s.scopes {
		if !sc.done {
			sc.complete()
		}
	}
	s.settle()
}

// touch notes a change of what Current returns. The caller holds mu.
func (s *Source) touch() {
	s.current, s.unsaved = nil, true
	notify(s.changed)
}

// notify sends to a channel with a buffer of one, unless a value is already there.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// A snapshot holds the objects in all scopes. It is immutable, and implements [config.References].
type snapshot struct {
	saved      time.Time // of a copy
	namespaces []string  // "" is all namespaces
	resources  []*config.Resource
	secrets    map[key]*content
	configMaps map[key]*content
}

// snapshot returns what complete scopes know. The caller holds mu.
func (s *Source) snapshot() *snapshot {
	all := &snapshot{secrets: map[key]*content{}, configMaps: map[key]*content{}}
	for namespace, sc := range s.scopes {
		if !sc.done {
			continue
		}
		all.namespaces = append(all.namespaces, namespace)
		for _, table := range []*entries{sc.tenants, sc.users} {
			for _, e := range table.all {
				if e.shown != nil {
					all.resources = append(all.resources, e.shown.resource)
				}
			}
		}
		sc.secrets.copyLoaded(all.secrets)
		sc.configMaps.copyLoaded(all.configMaps)
	}
	slices.SortFunc(all.resources, func(a, b *config.Resource) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Secret implements [config.References].
func (s *snapshot) Secret(namespace, name string) (data map[string][]byte, version string, ok bool) {
	if c := s.secrets[key{namespace, name}]; c != nil {
		return c.Secret, c.Version, true
	}
	return nil, "", false
}

// ConfigMap implements [config.References].
func (s *snapshot) ConfigMap(namespace, name string) (data map[string]string, version string, ok bool) {
	if c := s.configMaps[key{namespace, name}]; c != nil {
		return c.ConfigMap, c.Version, true
	}
	return nil, "", false
}

// Applied implements [server.ResourceSource].
func (s *Source) Applied(m *config.ResourceMerge) { s.reporter.Applied(m) }

// Leading implements [server.ResourceSource].
func (s *Source) Leading() bool { return s.reporter.Leading() }
