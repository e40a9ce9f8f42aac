package account

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/storage/s3client"
)

// forgetUsage is how long the table keeps a usage without a quota.
const forgetUsage = time.Hour

// A Quota limits what a tenant, or one of its users, may store below the root of the tenant or of the user.
type Quota struct {
	*driver.Usage
	Tenant string
	User   string // empty for the tenant's own quota
	Limit  int64  // in bytes

	bucket *s3client.Bucket
}

// Countable reports whether the bucket of the quota can be used.
func (q *Quota) Countable() bool { return q.bucket.Usable() }

// usages is the table of all usages. A quota looks up its usage each time, by the place of its root. So all quotas of
// one root share a usage, a reload keeps it, and sessions from before a reload get the limits from after it.
type usages struct {
	mu      sync.Mutex
	buckets map[s3client.Place]*driver.Usages
	wake    chan struct{} // gets a value if a usage must be counted
}

func newUsages() *usages {
	return &usages{buckets: map[s3client.Place]*driver.Usages{}, wake: make(chan struct{}, 1)}
}

// in returns the usages of a bucket.
func (us *usages) in(b *s3client.Bucket) *driver.Usages {
	us.mu.Lock()
	defer us.mu.Unlock()
	place := b.Place()
	if us.buckets[place] == nil {
		us.buckets[place] = driver.NewUsages()
	}
	return us.buckets[place]
}

// quota returns the quota of a tenant or user with a root, nil if it has no limit.
func (us *usages) quota(s *state, tenant, user string, root mount) *Quota {
	limit := s.quota.Load()
	if limit == 0 {
		return nil
	}
	usage, added := us.in(root.bucket).Of(root.bucket.Client, root.bucket.Name, root.prefix)
	if added {
		us.count()
	}
	return &Quota{Usage: usage, Tenant: tenant, User: user, Limit: limit, bucket: root.bucket}
}

// count wakes the reader of [Registry.Uncounted].
func (us *usages) count() {
	select {
	case us.wake <- struct{}{}:
	default: // it has not begun yet
	}
}

// forget drops the usages that no command and no quota of the configuration has asked for.
func (us *usages) forget() {
	us.mu.Lock()
	defer us.mu.Unlock()
	for _, in := range us.buckets {
		in.Forget(forgetUsage)
	}
}

// Quotas returns the quotas of all tenants and users. Users from a directory or hook are among them as long as the
// process remembers them.
func (r *Registry) Quotas() (all []*Quota) {
	for _, t := range r.current.Load().tenants {
		all = append(all, r.usages.quota(t.state, t.Name, "", t.root()))
		for _, u := range t.all() {
			all = append(all, r.usages.quota(u.state, t.Name, u.Name, u.root()))
		}
	}
	return nonNil(all)
}

// DueQuotas returns the quotas that the caller must count: each one when it is new, and then once in an interval. Call
// it every minute, and when Uncounted has a value.
func (r *Registry) DueQuotas(interval time.Duration) []*Quota {
	all := r.Quotas()
	r.usages.forget()
	return slices.DeleteFunc(all, func(q *Quota) bool { return !q.Countable() || !q.Due(interval) })
}

// Uncounted returns a channel that gets a value when there are new quotas, or after CountQuotas.
func (r *Registry) Uncounted() <-chan struct{} { return r.usages.wake }

// CountQuotas says that a bucket has become usable, whose quotas can be counted.
func (r *Registry) CountQuotas() { r.usages.count() }

// quotas returns the quotas in force for a user, whose login may be older than the configuration: those of the user and
// of the tenant.
func (r *Registry) quotas(u *User) []*Quota {
	t := u.Tenant
	return nonNil([]*Quota{
		r.usages.quota(u.state, t.Name, u.Name, u.root()), r.usages.quota(t.state, t.Name, "", t.root()),
	})
}

func nonNil(quotas []*Quota) []*Quota {
	return slices.DeleteFunc(quotas, func(q *Quota) bool { return q == nil })
}

// quotasIn returns the usages of a bucket, with the limits of a user.
func (r *Registry) quotasIn(b *s3client.Bucket, u *User) driver.Quotas {
	return driver.Quotas{Usages: r.usages.in(b), Limits: func() (limits []driver.Limit) {
		for _, q := range r.quotas(u) {
			limits = append(limits, driver.Limit{Usage: q.Usage, Bytes: q.Limit})
		}
		return limits
	}}
}

// A Usage is how much of a quota is used.
type Usage struct {
	Used, Limit int64 // in bytes
	Known       bool  // the objects have been counted
}

// usage returns the usage of the quota with the least room for a user, nil without a quota.
func (r *Registry) usage(u *User) *Usage {
	var all []*Usage
	for _, q := range r.quotas(u) {
		used, known := q.Used()
		all = append(all, &Usage{used, q.Limit, known})
	}
	if len(all) == 0 {
		return nil
	}
	return slices.MinFunc(all, func(a, b *Usage) int { return cmp.Compare(a.Limit-a.Used, b.Limit-b.Used) })
}
