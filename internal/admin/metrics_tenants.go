package admin

import (
	"iter"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// tenantLabel is the name of the label.
const tenantLabel = "tenant"

// tenantMetrics knows which tenants have series of their own: those of the configuration. What others do counts for the
// tenant with the empty name, such as the last sessions of a tenant that was removed. Its methods may be called by
// any goroutine.
type tenantMetrics struct {
	mu     sync.RWMutex
	names  map[string]bool
	forget []func(name string) // each removes the series of a tenant
}

// Replace tells the tenants of a configuration, and removes the series of all others.
func (t *tenantMetrics) Replace(names iter.Seq[string]) {
	next := map[string]bool{}
	for name := range names {
		next[name] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.names {
		if next[name] {
			continue
		}
		for _, forget := range t.forget {
			forget(name)
		}
	}
	t.names = next
}

// count calls a function with the label of a tenant. No series is removed meanwhile, so none comes back.
func (t *tenantMetrics) count(name string, with func(label string)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.names[name] {
		name = ""
	}
	with(name)
}

// A TenantCounter counts by tenant, and by other labels.
type TenantCounter struct {
	*prometheus.CounterVec
	tenants *tenantMetrics
}

// NewCounter returns a counter with the label tenant and others.
func (t *tenantMetrics) NewCounter(name, help string, others ...string) *TenantCounter {
	labels := slices.Insert(others, 0, tenantLabel)
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	t.forget = append(t.forget, func(name string) { vec.DeletePartialMatch(prometheus.Labels{tenantLabel: name}) })
	return &TenantCounter{vec, t}
}

// Add counts n for a tenant and the values of the other labels.
func (c *TenantCounter) Add(n int, tenant string, others ...string) {
	c.tenants.count(tenant, func(label string) {
		c.WithLabelValues(slices.Insert(others, 0, label)...).Add(float64(n))
	})
}
