package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// A reflector that fails tries again after this time. It doubles up to maxBackoff, plus jitter.
const (
	minBackoff = 200 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// A table holds objects of one kind. The caller of put, remove and retain holds Source.mu.
type table interface {
	// convert returns what put needs of an object. It accepts its own result.
	convert(o any) any
	put(k key, o any)
	remove(k key)
	// retain removes all other objects.
	retain(keys map[key]bool)
}

// A collection follows the objects of one kind in a scope. It is the store of a reflector.
type collection struct {
	scope    *scope
	plural   string
	table    table
	example  runtime.Object // an object of this kind
	answered bool           // all objects were read once, or the API server has refused to list them
	refused  bool           // the last request was refused
	problem  error          // of the last request, if it means that changes do not arrive
	since    time.Time      // of problem
}

var _ cache.TransformingStore = (*collection)(nil)

// run follows the objects until ctx ends.
func (c *collection) run(ctx context.Context) {
	s := c.scope.source
	selector, client := fields.Everything(), cache.Getter(s.custom)
	if c.plural == secrets || c.plural == configMaps {
		client = s.client.CoreV1().RESTClient()
	}
	if c.plural == secrets {
		selector = usableSecrets()
	}
	requests := cache.NewListWatchFromClient(client, c.plural, c.scope.namespace, selector)
	noted := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := requests.ListWithContext(ctx, options)
			c.heard(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := requests.WatchWithContext(ctx, options)
			c.heard(ctx, err)
			return w, err
		},
	}
	// heard logs errors, once.
	silent := logr.Discard()
	reflector := cache.NewReflectorWithOptions(noted, c.example, c, cache.ReflectorOptions{
		Name: c.plural, Logger: &silent,
		Backoff: &wait.Backoff{Duration: minBackoff, Cap: maxBackoff, Steps: 10, Factor: 2, Jitter: 0.5},
	})
	reflector.RunWithContext(klog.NewContext(ctx, silent))
}

// heard notes the result of a request.
func (c *collection) heard(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	s := c.scope.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.scope.closed {
		return
	}
	refused := apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
	if refused != c.refused {
		c.refused = refused
		if refused {
			s.log.Warn("Kubernetes resources cannot be read; those already known stay in use",
				"namespace", c.scope.namespace, "resource", c.plural, "err", err)
		} else if err == nil {
			s.log.Info("Kubernetes resources can be read again",
				"namespace", c.scope.namespace, "resource", c.plural)
		}
	}
	if refused {
		c.answer()
	}
	s.setAway(c, err)
	switch {
	case !refused && !isAway(err):
		c.problem = nil
	case c.problem == nil:
		c.since = time.Now()
		fallthrough
	default:
		c.problem = err
	}
}

// setAway notes whether a collection reaches the API server. The caller holds mu.
func (s *Source) setAway(c *collection, err error) {
	was := len(s.away) > 0
	if isAway(err) {
		s.away[c] = true
	} else {
		delete(s.away, c)
	}
	switch is := len(s.away) > 0; {
	case is && !was:
		s.log.Warn("Kubernetes API server not available; known resources stay in use", "err", err)
	case was && !is:
		s.log.Info("Kubernetes API server available again")
	}
}

// isAway reports whether an error means that the API server does not work, rather than that it refuses the request.
func isAway(err error) bool {
	var refusal apierrors.APIStatus
	if err == nil || !errors.As(err, &refusal) {
		return err != nil
	}
	code := refusal.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests ||
		code == http.StatusUnauthorized
}

// answer notes that the API server has responded for this collection. The caller holds mu.
func (c *collection) answer() {
	if c.answered {
		return
	}
	c.answered = true
	c.scope.check()
	notify(c.scope.source.wake)
}

// Transformer implements [cache.TransformingStore].
func (c *collection) Transformer() cache.TransformFunc {
	return func(o any) (any, error) { return c.table.convert(o), nil }
}

// Add implements [cache.ReflectorStore].
func (c *collection) Add(o any) error {
	converted := c.table.convert(o)
	k := keyOf(converted)
	return c.change(func() { c.table.put(k, converted) })
}

// Update implements [cache.ReflectorStore].
func (c *collection) Update(o any) error { return c.Add(o) }

// Delete implements [cache.ReflectorStore].
func (c *collection) Delete(o any) error {
	k := keyOf(c.table.convert(o))
	return c.change(func() { c.table.remove(k) })
}

// Replace implements [cache.ReflectorStore].
func (c *collection) Replace(all []any, _ string) error {
	keys := make(map[key]bool, len(all))
	for i, o := range all {
		all[i] = c.table.convert(o)
		keys[keyOf(all[i])] = true
	}
	return c.change(func() {
		for _, o := range all {
			c.table.put(keyOf(o), o)
		}
		c.table.retain(keys)
		c.answer()
	})
}

// Resync implements [cache.ReflectorStore].
func (c *collection) Resync() error { return nil }

// change changes the table and shows what has become complete.
func (c *collection) change(do func()) error {
	c.scope.source.mu.Lock()
	defer c.scope.source.mu.Unlock()
	if !c.scope.closed {
		do()
		c.scope.advance()
	}
	return nil
}

// keyOf returns the key of a converted object.
func keyOf(o any) key {
	meta := o.(metav1.Object)
	return key{meta.GetNamespace(), meta.GetName()}
}
