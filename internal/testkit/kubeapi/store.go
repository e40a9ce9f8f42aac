package kubeapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
)

// maxHistory limits the changes that a watch can start from.
const maxHistory = 20_000

// A kind is a kind of resource.
type kind struct {
	group, version, plural, name string
	custom                       bool // has a generation and a status subresource
	cluster                      bool // has no namespace
	model                        any  // defines the merge of lists in strategic merge patches
}

func kinds() []*kind {
	return []*kind{
		{group: "babelftp.io", version: "v1alpha1", plural: "ftptenants", name: "FTPTenant", custom: true},
		{group: "babelftp.io", version: "v1alpha1", plural: "ftpusers", name: "FTPUser", custom: true},
		{version: "v1", plural: "secrets", name: "Secret", model: corev1.Secret{}},
		{version: "v1", plural: "configmaps", name: "ConfigMap", model: corev1.ConfigMap{}},
		{version: "v1", plural: "events", name: "Event", model: corev1.Event{}},
		{version: "v1", plural: "namespaces", name: "Namespace", cluster: true, model: corev1.Namespace{}},
		{group: "events.k8s.io", version: "v1", plural: "events", name: "Event", model: eventsv1.Event{}},
		{group: "coordination.k8s.io", version: "v1", plural: "leases", name: "Lease", model: coordinationv1.Lease{}},
	}
}

func (k *kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.group, Resource: k.plural}
}

func (k *kind) apiVersion() string {
	return schema.GroupVersion{Group: k.group, Version: k.version}.String()
}

// A key is the identity of an object.
type key struct {
	kind            *kind
	namespace, name string
}

// An object is one version of an object. It is immutable.
type object struct {
	key
	version int64
	raw     []byte // JSON
	labels  labels.Set
	fields  fields.Set
}

// decode returns a copy of the object.
func (o *object) decode() map[string]any {
	decoded, err := decode(o.raw)
	if err != nil {
		panic(err) // raw was encoded by this package
	}
	return decoded
}

// A change is an entry of the history.
type change struct {
	typ     watch.EventType
	version int64
	object  *object // after the change; of a deletion, the last content with the version of the deletion
	before  *object // nil if the change created the object
}

// A store holds the objects and their history.
type store struct {
	kinds []*kind

	mu      sync.Mutex
	version int64
	objects map[key]*object
	history []change
	oldest  int64             // a watch must start from this version or a later one
	applied map[string][]byte // last applied configurations by manager and path
	changed chan struct{}     // closed by the next change
	ended   chan struct{}     // closed when all watches must end
}

func newStore() *store {
	return &store{
		kinds: kinds(), version: 1, objects: map[key]*object{}, applied: map[string][]byte{}, oldest: 1,
		changed: make(chan struct{}), ended: make(chan struct{}),
	}
}

func (s *store) endWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ended)
	s.ended = make(chan struct{})
}

// compact forgets all changes, and makes even the current version one that a watch cannot start from.
func (s *store) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.oldest, s.history = s.version, nil
}

// get returns an object.
func (s *store) get(k key) (*object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(k)
}

func (s *store) find(k key) (*object, error) {
	o := s.objects[k]
	if o == nil {
		return nil, apierrors.NewNotFound(k.kind.resource(), k.name)
	}
	return o, nil
}

// put replaces an object by what mutate returns, or creates it if mutate accepts nil. It calls mutate with a copy.
func (s *store) put(k key, mutate func(old map[string]any) (map[string]any, error)) (*object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects[k]
	var old map[string]any
	if before != nil {
		old = before.decode()
	}
	next, err := mutate(old)
	if err != nil {
		return nil, err
	}
	if before != nil {
		old = before.decode() // mutate may have changed its copy
	}
	if err := complete(k, old, next); err != nil {
		return nil, err
	}
	if before != nil && sameContent(old, next) {
		return before, nil
	}
	if before != nil && metadata(next)["deletionTimestamp"] != nil && !hasFinalizers(next) {
		return s.remove(before), nil
	}
	o := s.newObject(k, next)
	typ := watch.Modified
	if before == nil {
		typ = watch.Added
	}
	s.objects[k] = o
	s.record(change{typ: typ, version: o.version, object: o, before: before})
	return o, nil
}

// complete sets the metadata that the server manages, except the version of the object.
func complete(k key, old, next map[string]any) error {
	meta := metadata(next)
	next["apiVersion"], next["kind"] = k.kind.apiVersion(), k.kind.name
	meta["name"] = k.name
	if !k.kind.cluster {
		meta["namespace"] = k.namespace
	}
	if old == nil {
		meta["uid"] = string(uuid.NewUUID())
		meta["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		delete(meta, "resourceVersion")
		delete(meta, "generation")
		if k.kind.custom {
			meta["generation"] = json.Number("1")
		}
		return nil
	}
	was := metadata(old)
	for _, id := range []string{"uid", "resourceVersion"} {
		if text, _ := meta[id].(string); text != "" && text != was[id] {
			return apierrors.NewConflict(
				k.kind.resource(), k.name, fmt.Errorf("the object has been modified: %s is %v, not %s", id, was[id], text))
		}
		meta[id] = was[id]
	}
	meta["creationTimestamp"] = was["creationTimestamp"]
	if at, deleted := was["deletionTimestamp"]; deleted {
		meta["deletionTimestamp"] = at
	}
	delete(meta, "generation")
	if generation, has := was["generation"]; has {
		meta["generation"] = generation
		if !bytes.Equal(encode(specOf(old)), encode(specOf(next))) {
			number, err := strconv.ParseInt(fmt.Sprint(generation), 10, 64)
			if err != nil {
				return err
			}
			meta["generation"] = json.Number(strconv.FormatInt(number+1, 10))
		}
	}
	return nil
}

// sameContent reports whether two versions differ only in their field managers.
func sameContent(a, b map[string]any) bool {
	managers := metadata(b)["managedFields"]
	metadata(b)["managedFields"] = metadata(a)["managedFields"]
	same := bytes.Equal(encode(a), encode(b))
	metadata(b)["managedFields"] = managers
	return same
}

// specOf returns the parts of an object that its generation counts.
func specOf(o map[string]any) map[string]any {
	spec := map[string]any{}
	for name, value := range o {
		if name != "metadata" && name != "status" {
			spec[name] = value
		}
	}
	return spec
}

// newObject gives o the next version.
func (s *store) newObject(k key, o map[string]any) *object {
	s.version++
	metadata(o)["resourceVersion"] = strconv.FormatInt(s.version, 10)
	made := &object{key: k, version: s.version, raw: encode(o), labels: labels.Set{}, fields: fields.Set{
		"metadata.name": k.name, "metadata.namespace": k.namespace,
	}}
	given, _ := metadata(o)["labels"].(map[string]any)
	for name, value := range given {
		made.labels[name] = fmt.Sprint(value)
	}
	if k.kind.plural == "secrets" {
		made.fields["type"], _ = o["type"].(string)
	}
	for _, about := range []string{"involvedObject", "regarding"} {
		object, _ := o[about].(map[string]any)
		for name, value := range object {
			made.fields[about+"."+name] = fmt.Sprint(value)
		}
	}
	return made
}

// delete deletes an object if check accepts it. An object with finalizers stays until they are removed.
func (s *store) delete(k key, check func(*object) error) (*object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := s.find(k)
	if err != nil {
		return nil, err
	}
	if err := check(o); err != nil {
		return nil, err
	}
	if next := o.decode(); hasFinalizers(next) {
		if metadata(next)["deletionTimestamp"] == nil {
			metadata(next)["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
			s.objects[k] = s.newObject(k, next)
			s.record(change{typ: watch.Modified, version: s.version, object: s.objects[k], before: o})
		}
		return s.objects[k], nil
	}
	return s.remove(o), nil
}

// remove removes an object, and returns its last content with the version of the deletion.
func (s *store) remove(o *object) *object {
	last := s.newObject(o.key, o.decode())
	delete(s.objects, o.key)
	s.record(change{typ: watch.Deleted, version: last.version, object: last, before: o})
	return last
}

func hasFinalizers(o map[string]any) bool {
	finalizers, _ := metadata(o)["finalizers"].([]any)
	return len(finalizers) > 0
}

func (s *store) record(c change) {
	s.history = append(s.history, c)
	if len(s.history) > maxHistory {
		s.oldest = s.history[len(s.history)-maxHistory/2-1].version
		s.history = slices.Clone(s.history[len(s.history)-maxHistory/2:])
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// A selection is the objects that a list or a watch returns.
type selection struct {
	kind      *kind
	namespace string // "" for all
	labels    labels.Selector
	fields    fields.Selector
}

func (s *selection) matches(o *object) bool {
	return o != nil && o.kind == s.kind && (s.namespace == "" || o.namespace == s.namespace) &&
		s.labels.Matches(o.labels) && s.fields.Matches(o.fields)
}

// list returns the selected objects after a name, in order, and the version of the store.
func (s *store) list(sel *selection, after string) ([]*object, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*object
	for _, o := range s.objects {
		if sel.matches(o) && o.path() > after {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b *object) int { return cmp.Compare(a.path(), b.path()) })
	return found, s.version
}

func (o *object) path() string { return o.namespace + "/" + o.name }

// expired returns an error if changes after the version are forgotten or in the future.
func (s *store) expired(version int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version > s.version {
		err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, s.version), 1)
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, tooLarge())
		return err
	}
	if version < s.oldest {
		return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, s.oldest))
	}
	return nil
}

// since returns the changes of a selection after a version as a watch shows them, the new version, and a channel that
// the next change closes.
func (s *store) since(sel *selection, version int64) ([]change, int64, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, _ := slices.BinarySearchFunc(s.history, version+1, func(c change, v int64) int {
		return cmp.Compare(c.version, v)
	})
	var found []change
	for _, c := range s.history[first:] {
		was, is := sel.matches(c.before), c.typ != watch.Deleted && sel.matches(c.object)
		switch {
		case was && is:
			c.typ = watch.Modified
		case is:
			c.typ = watch.Added
		case was:
			c.typ = watch.Deleted
		default:
			continue
		}
		found = append(found, c)
	}
	return found, s.version, s.changed
}

// encode returns the JSON of o with sorted keys.
func encode(o map[string]any) []byte {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err) // o was decoded from JSON
	}
	return raw
}

func decode(raw []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var o map[string]any
	if err := decoder.Decode(&o); err != nil {
		return nil, err
	}
	return o, nil
}

// metadata returns the metadata of an object, which it adds if necessary.
func metadata(o map[string]any) map[string]any {
	m, ok := o["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		o["metadata"] = m
	}
	return m
}
