package admin

import (
	"iter"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

const tenantLabel = "tenant"

// tenantMetrics knows the tenants of the configuration, which have series of their own. Everything else
// counts for the tenant with the empty name, such as the last sessions of a removed tenant. Its methods are
// safe for concurrent use.
type tenantMetrics struct {
	mu     sync.RWMutex
	names  map[string]bool
	forget []func(name string) // each deletes the series of a tenant
}

// Replace sets the tenants and deletes the series of all others.
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

// count calls with with the label of a tenant. It holds the read lock, so that Replace cannot delete the
// series before with creates it again.
func (t *tenantMetrics) count(name string, with func(label string)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.names[name] {
		name = ""
	}
	with(name)
}

// A TenantCounter counts by tenant and other labels.
type TenantCounter struct {
	*prometheus.CounterVec
	tenants *tenantMetrics
}

// NewCounter returns a counter with the label tenant and the given other labels.
func (t *tenantMetrics) NewCounter(name, help string, others ...string) *TenantCounter {
	labels := slices.Insert(others, 0, tenantLabel)
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	t.forget = append(t.forget, func(name string) { vec.DeletePartialMatch(prometheus.Labels{tenantLabel: name}) })
	return &TenantCounter{vec, t}
}

// Add adds n for a tenant and the values of the other labels.
func (c *TenantCounter) Add(n int, tenant string, others ...string) {
	c.tenants.count(tenant, func(label string) {
		c.WithLabelValues(slices.Insert(others, 0, label)...).Add(float64(n))
	})
}
