package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/babelftp/babelftp/internal/config"
)

const (
	// resourceCollections is the number of collections of resources in a scope.
	resourceCollections = 2
	// collections also counts the ones of Secrets and ConfigMaps.
	collections = 4
)

// A key is the name of an object and its namespace.
type key struct{ namespace, name string }

// A scope is a watched namespace, or all namespaces, with the objects known of it. Source.mu guards it.
type scope struct {
	source    *Source
	namespace string // "" is all namespaces

	tenants, users      *entries
	secrets, configMaps *contents
	waiting             map[*entry]bool // entries whose newest version is not shown yet

	start   func(*collection) // nil before run
	stop    context.CancelFunc
	running []*collection // the tenants and users, and later the Secrets and ConfigMaps
	closed  bool
	seeded  bool // has objects of a copy or of other scopes
	done    bool // everything was read once, so that Current has the resources
}

func newScope(s *Source, namespace string) *scope {
	sc := &scope{source: s, namespace: namespace, waiting: map[*entry]bool{}}
	sc.tenants = &entries{sc, config.TenantResource, map[key]*entry{}}
	sc.users = &entries{sc, config.UserResource, map[key]*entry{}}
	sc.secrets, sc.configMaps = newContents(sc, secrets), newContents(sc, configMaps)
	return sc
}

// seed adds what is already known of the namespace.
func (sc *scope) seed(known *snapshot) {
	within := func(namespace string) bool {
		return sc.namespace == "" || namespace == "" || namespace == sc.namespace
	}
	for _, namespace := range known.namespaces {
		sc.seeded = sc.seeded || within(namespace)
	}
	for k, c := range known.secrets {
		if within(k.namespace) {
			sc.secrets.objects[k] = c
		}
	}
	for k, c := range known.configMaps {
		if within(k.namespace) {
			sc.configMaps.objects[k] = c
		}
	}
	for _, r := range known.resources {
		if !within(r.Namespace) {
			continue
		}
		sc.of(r.Kind).putVersion(key{r.Namespace, r.Name}, r, nil)
	}
}

func (sc *scope) of(kind config.ResourceKind) *entries {
	if kind == config.TenantResource {
		return sc.tenants
	}
	return sc.users
}

// run starts the reflectors that are missing. The reflectors of Secrets and ConfigMaps start when the resources were
// read, because they only keep what a resource refers to.
func (sc *scope) run(ctx context.Context, group *sync.WaitGroup) {
	if sc.start == nil {
		ctx, sc.stop = context.WithCancel(ctx)
		sc.start = func(c *collection) {
			sc.running = append(sc.running, c)
			start(group, func() { c.run(ctx) })
		}
		sc.start(&collection{scope: sc, plural: Tenants, table: sc.tenants, example: &Object{}})
		sc.start(&collection{scope: sc, plural: Users, table: sc.users, example: &Object{}})
	}
	if len(sc.running) == resourceCollections && sc.answered() {
		sc.start(&collection{scope: sc, plural: secrets, table: sc.secrets, example: &corev1.Secret{}})
		sc.start(&collection{scope: sc, plural: configMaps, table: sc.configMaps, example: &corev1.ConfigMap{}})
	}
}

// answered reports whether the API server has responded for all running collections.
func (sc *scope) answered() bool {
	return !slices.ContainsFunc(sc.running, func(c *collection) bool { return !c.answered })
}

// check completes the scope when everything was read.
func (sc *scope) check() {
	if !sc.done && len(sc.running) == collections && sc.answered() {
		sc.complete()
		sc.source.settle()
	}
}

// close stops the reflectors.
func (sc *scope) close() {
	sc.closed = true
	sc.stop()
	for _, c := range sc.running {
		sc.source.setAway(c, nil)
	}
}

// complete shows all resources: everything was read once, or comes from the copy.
func (sc *scope) complete() {
	sc.done = true
	sc.secrets.fillAbsent()
	sc.configMaps.fillAbsent()
	sc.advance()
	sc.source.touch()
}

// advance shows the versions that have become complete.
func (sc *scope) advance() {
	if !sc.done {
		return
	}
	for e := range sc.waiting {
		secrets, configMaps := sc.secrets.read(e.next.secrets), sc.configMaps.read(e.next.configMaps)
		if !secrets || !configMaps {
			continue
		}
		delete(sc.waiting, e)
		sc.release(e.shown)
		e.shown = e.next
		sc.source.touch()
	}
}

// acquire and release count what refers to Secrets and ConfigMaps.
func (sc *scope) acquire(v *version) {
	sc.secrets.acquire(v.secrets)
	sc.configMaps.acquire(v.configMaps)
}

func (sc *scope) release(v *version) {
	if v != nil {
		sc.secrets.release(v.secrets)
		sc.configMaps.release(v.configMaps)
	}
}

// An entry is a resource.
type entry struct {
	object *Object  // the newest version as the API server has it; nil if it comes from a copy
	next   *version // the newest version
	shown  *version // the version in Current; nil if none
}

// A version is a version of a resource, with what it refers to.
type version struct {
	resource            *config.Resource
	secrets, configMaps []key
}

func newVersion(r *config.Resource, finder *config.ReferenceFinder) *version {
	v := &version{resource: r}
	add := func(spec []byte) {
		secrets, configMaps := finder.ReferencesOf(r.Kind, spec)
		for _, name := range secrets {
			v.secrets = append(v.secrets, key{r.Namespace, name})
		}
		for _, name := range configMaps {
			v.configMaps = append(v.configMaps, key{r.Namespace, name})
		}
	}
	add(r.Spec)
	if a := r.Accepted; a != nil && !bytes.Equal(a.Spec, r.Spec) {
		add(a.Spec)
	}
	return v
}

// entries holds the FTPTenants or FTPUsers of a scope. It is the store of their reflector.
type entries struct {
	scope *scope
	kind  config.ResourceKind
	all   map[key]*entry
}

// convert implements table. It drops the metadata that nobody needs.
func (t *entries) convert(o any) any {
	object := o.(*Object)
	object.ManagedFields, object.Labels, object.Annotations = nil, nil, nil
	return object
}

// put implements table. A resource that waits for its finalizers is deleted already.
func (t *entries) put(k key, o any) {
	object := o.(*Object)
	if object.DeletionTimestamp != nil {
		t.remove(k)
		return
	}
	r := &config.Resource{
		Kind: t.kind, Namespace: k.namespace, Name: k.name, UID: string(object.UID), Generation: object.Generation,
		Created: object.CreationTimestamp.UTC(), Spec: object.Spec,
	}
	if r.Spec == nil {
		r.Spec = []byte("{}")
	}
	if a := acceptedSpec(object.Status); a != nil {
		if bytes.Equal(a.Spec, r.Spec) {
			a.Spec = r.Spec
		}
		r.Accepted = &config.AcceptedSpec{Generation: a.Generation, Spec: a.Spec}
	}
	t.putVersion(k, r, object)
}

// putVersion makes r the newest version of a resource, unless it has not changed.
func (t *entries) putVersion(k key, r *config.Resource, object *Object) {
	e := t.all[k]
	if e == nil {
		e = &entry{}
		t.all[k] = e
	}
	e.object = object
	if e.next != nil && sameResource(e.next.resource, r) {
		if object != nil {
			object.Spec = e.next.resource.Spec // keeps one copy
		}
		return
	}
	before := e.next
	e.next = newVersion(r, &t.scope.source.finder)
	t.scope.acquire(e.next)
	if before != e.shown {
		t.scope.release(before)
	}
	t.scope.waiting[e] = true
}

// remove implements table.
func (t *entries) remove(k key) {
	e := t.all[k]
	if e == nil {
		return
	}
	delete(t.all, k)
	delete(t.scope.waiting, e)
	if e.next != e.shown {
		t.scope.release(e.next)
	}
	if e.shown != nil {
		t.scope.release(e.shown)
		t.scope.source.touch()
	}
}

// retain implements table.
func (t *entries) retain(keys map[key]bool) {
	for k := range t.all {
		if !keys[k] {
			t.remove(k)
		}
	}
}

// sameResource reports whether a reader of Current would see no difference.
func sameResource(a, b *config.Resource) bool {
	sameAccepted := a.Accepted == b.Accepted || a.Accepted != nil && b.Accepted != nil &&
		a.Accepted.Generation == b.Accepted.Generation && bytes.Equal(a.Accepted.Spec, b.Accepted.Spec)
	return sameAccepted && a.UID == b.UID && a.Generation == b.Generation && bytes.Equal(a.Spec, b.Spec)
}

// acceptedSpec returns the accepted spec in a status, or nil. Other fields may have unexpected types, for example of
// another version of the definition.
func acceptedSpec(status json.RawMessage) *AcceptedSpec {
	var parts struct {
		Accepted *AcceptedSpec `json:"accepted"`
	}
	if len(status) == 0 || json.Unmarshal(status, &parts) != nil {
		return nil
	}
	return parts.Accepted
}
