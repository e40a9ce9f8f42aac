package kubernetes

import (
	"bytes"
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

const (
	secrets    = "secrets"
	configMaps = "configmaps"
)

const (
	// fetchers is the number of simultaneous requests for a Secret or ConfigMap.
	fetchers = 8
	// fetchTimeout limits each of them.
	fetchTimeout = 5 * time.Second
	// fetchAgain is the time after which a failed one is repeated. It doubles up to maxFetchAgain.
	fetchAgain    = 100 * time.Millisecond
	maxFetchAgain = 5 * time.Second
)

// unusedSecrets are the types of Secrets that no resource can refer to. Some clusters have thousands of them.
func unusedSecrets() []corev1.SecretType {
	return []corev1.SecretType{
		"helm.sh/release.v1", corev1.SecretTypeServiceAccountToken, corev1.SecretTypeDockercfg,
		corev1.SecretTypeDockerConfigJson, corev1.SecretTypeBootstrapToken,
	}
}

// usableSecrets selects all other Secrets.
func usableSecrets() fields.Selector {
	var all []fields.Selector
	for _, t := range unusedSecrets() {
		all = append(all, fields.OneTermNotEqualSelector("type", string(t)))
	}
	return fields.AndSelectors(all...)
}

// A contentState says what is known of a Secret or ConfigMap.
type contentState int

const (
	loaded contentState = iota
	stale               // like loaded, but there is a newer version, which must be fetched
	stub                // it exists, and its content was dropped because nothing referred to it
	absent              // it does not exist, and something refers to it
)

// A content is a Secret or ConfigMap. It is immutable.
type content struct {
	state     contentState
	Version   string            // the version in which the content last changed
	Secret    map[string][]byte `json:",omitempty"`
	ConfigMap map[string]string `json:",omitempty"`
}

// known reports whether resources that refer to the object can be shown.
func (c *content) known() bool { return c != nil && c.state != stub }

// current reports whether the object need not be fetched.
func (c *content) current() bool { return c.known() && c.state != stale }

func (c *content) equal(other *content) bool {
	return c.state == other.state && maps.EqualFunc(c.Secret, other.Secret, bytes.Equal) &&
		maps.Equal(c.ConfigMap, other.ConfigMap)
}

// contents holds the Secrets or ConfigMaps of a scope. It is the store of their reflector.
type contents struct {
	scope    *scope
	plural   string
	objects  map[key]*content
	refs     map[key]int  // versions of resources that refer to an object
	fetching map[key]bool // objects that are being fetched, and whether the reflector has seen a change since
}

func newContents(sc *scope, plural string) *contents {
	return &contents{sc, plural, map[key]*content{}, map[key]int{}, map[key]bool{}}
}

// An observed object is a Secret or ConfigMap in a form that a reflector can store.
type observed struct {
	metav1.ObjectMeta

	content *content
}

// observe returns the content of a Secret or ConfigMap.
func observe(o any) *observed {
	switch o := o.(type) {
	case *corev1.Secret:
		return &observed{
			metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, ResourceVersion: o.ResourceVersion},
			&content{Version: o.ResourceVersion, Secret: o.Data},
		}
	case *corev1.ConfigMap:
		return &observed{
			metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, ResourceVersion: o.ResourceVersion},
			&content{Version: o.ResourceVersion, ConfigMap: o.Data},
		}
	default:
		return o.(*observed)
	}
}

// convert implements table. It drops contents that nothing refers to.
func (t *contents) convert(o any) any {
	i := observe(o)
	t.scope.source.mu.Lock()
	defer t.scope.source.mu.Unlock()
	if t.refs[key{i.Namespace, i.Name}] == 0 {
		i.content = &content{state: stub}
	}
	return i
}

// put implements table.
func (t *contents) put(k key, o any) {
	t.seen(k)
	t.set(k, o.(*observed).content)
}

// seen notes that the result of a running request may be older than what the reflector knows.
func (t *contents) seen(k key) {
	if _, fetching := t.fetching[k]; fetching {
		t.fetching[k] = true
	}
}

// set replaces an object.
func (t *contents) set(k key, c *content) {
	if t.refs[k] == 0 {
		t.objects[k] = &content{state: stub}
		return
	}
	before := t.objects[k]
	if before != nil && c.state == stub && before.state != absent {
		// A resource began to refer to the object after the reflector had dropped its content.
		if before.state == loaded {
			c = &content{state: stale, Version: before.Version, Secret: before.Secret, ConfigMap: before.ConfigMap}
		}
		t.scope.source.missing.Add(missing{t, k})
	}
	if before != nil && before.equal(c) {
		return
	}
	t.objects[k] = c
	if t.scope.done {
		t.scope.source.touch()
	}
}

// remove implements table.
func (t *contents) remove(k key) {
	t.seen(k)
	if t.refs[k] > 0 {
		t.set(k, &content{state: absent})
		return
	}
	delete(t.objects, k)
}

// retain implements table.
func (t *contents) retain(keys map[key]bool) {
	for k := range t.fetching {
		t.fetching[k] = true
	}
	for k := range t.objects {
		if !keys[k] {
			t.remove(k)
		}
	}
	t.fillAbsent()
}

// fillAbsent notes that the missing objects do not exist.
func (t *contents) fillAbsent() {
	for k := range t.refs {
		if t.objects[k] == nil {
			t.objects[k] = &content{state: absent}
		}
	}
}

func (t *contents) acquire(keys []key) {
	for _, k := range keys {
		t.refs[k]++
	}
}

// release drops the content of objects that nothing refers to any more.
func (t *contents) release(keys []key) {
	for _, k := range keys {
		if t.refs[k]--; t.refs[k] > 0 {
			continue
		}
		delete(t.refs, k)
		if c := t.objects[k]; c != nil && c.state == absent {
			delete(t.objects, k)
		} else if c != nil {
			t.objects[k] = &content{state: stub}
		}
	}
}

// read reports whether all objects were read, and fetches those that were not.
func (t *contents) read(keys []key) bool {
	all := true
	for _, k := range keys {
		if !t.objects[k].known() {
			all = false
			t.scope.source.missing.Add(missing{t, k})
		}
	}
	return all
}

// copyLoaded adds the contents that something refers to.
func (t *contents) copyLoaded(to map[key]*content) {
	for k := range t.refs {
		if c := t.objects[k]; c.known() && c.state != absent {
			to[k] = c
		}
	}
}

// missing is an object that a new version of a resource refers to, and whose content is not known.
type missing struct {
	of  *contents
	key key
}

// fetch requests missing objects until the queue ends.
func (s *Source) fetch(ctx context.Context) {
	for {
		m, ended := s.missing.Get()
		if ended {
			return
		}
		if s.fetchOne(ctx, m) {
			s.missing.Forget(m)
		} else {
			s.missing.AddRateLimited(m)
		}
		s.missing.Done(m)
	}
}

// fetchOne requests an object, and returns false if this must be repeated. It also requests objects that the reflector
// does not know: the watches of resources and of Secrets are not in step, and a Secret that was created just before its
// resource is not missing.
func (s *Source) fetchOne(ctx context.Context, m missing) bool {
	s.mu.Lock()
	needed := m.needed()
	if needed {
		m.of.fetching[m.key] = false
	}
	s.mu.Unlock()
	if !needed {
		return true
	}
	c, err := s.get(ctx, m)
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := m.of.fetching[m.key]
	delete(m.of.fetching, m.key)
	if err == nil && !seen {
		m.of.set(m.key, c)
	}
	m.of.scope.advance()
	return !m.needed()
}

// needed reports whether something refers to the object, and the object must be fetched.
func (m missing) needed() bool {
	return !m.of.scope.closed && m.of.refs[m.key] > 0 && !m.of.objects[m.key].current()
}

// get requests an object. One that may not be read does not exist for resources.
func (s *Source) get(ctx context.Context, m missing) (*content, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	var o any
	var err error
	if m.of.plural == secrets {
		var secret *corev1.Secret
		secret, err = s.client.CoreV1().Secrets(m.key.namespace).Get(ctx, m.key.name, metav1.GetOptions{})
		for _, t := range unusedSecrets() {
			if err == nil && secret.Type == t {
				return &content{state: absent}, nil
			}
		}
		o = secret
	} else {
		o, err = s.client.CoreV1().ConfigMaps(m.key.namespace).Get(ctx, m.key.name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return &content{state: absent}, nil
	}
	if err != nil {
		return nil, err
	}
	return observe(o).content, nil
}
