package account

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/storage/s3client"
)

// forgetUsage is the time after its last use at which a usage is dropped.
const forgetUsage = time.Hour

// A Quota limits how much a tenant, or one of its users, may store in the root directory of the tenant or the user.
type Quota struct {
	*driver.Usage
	Tenant string
	User   string // empty for the quota of the tenant
	Limit  int64  // in bytes

	bucket *s3client.Bucket
}

// Countable reports whether the objects can be counted, which requires a usable bucket.
func (q *Quota) Countable() bool { return q.bucket.Usable() }

// usages holds all usages by bucket and prefix. Quotas look up their usage each time they need it, so quotas with the
// same root share a usage, a configuration reload keeps it, and sessions that are older than a reload use the new
// limits.
type usages struct {
	mu      sync.Mutex
	buckets map[s3client.Place]*driver.Usages
	wake    chan struct{} // signaled if a usage must be counted
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

// quota returns the quota of a tenant or user with this root, or nil if it has no limit.
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

// count signals [Registry.Uncounted].
func (us *usages) count() {
	select {
	case us.wake <- struct{}{}:
	default: // already signaled
	}
}

// forget drops the usages that neither a command nor a quota has used recently.
func (us *usages) forget() {
	us.mu.Lock()
	defer us.mu.Unlock()
	for _, in := range us.buckets {
		in.Forget(forgetUsage)
	}
}

// Quotas returns the quotas of all tenants and users, including remembered users of a directory or hook.
func (r *Registry) Quotas() (all []*Quota) {
	for _, t := range r.current.Load().tenants {
		all = append(all, r.usages.quota(t.state, t.Name, "", t.root()))
		for _, u := range t.allUsers() {
			all = append(all, r.usages.quota(u.state, t.Name, u.Name, u.root()))
		}
	}
	return nonNil(all)
}

// DueQuotas returns the quotas whose objects the caller must count now: new quotas, and quotas that were last counted
// at least an interval ago. Call it every minute and when Uncounted is signaled.
func (r *Registry) DueQuotas(interval time.Duration) []*Quota {
	all := r.Quotas()
	r.usages.forget()
	return slices.DeleteFunc(all, func(q *Quota) bool { return !q.Countable() || !q.Due(interval) })
}

// Uncounted returns a channel that is signaled when there are new quotas, and after CountQuotas.
func (r *Registry) Uncounted() <-chan struct{} { return r.usages.wake }

// CountQuotas signals Uncounted after a bucket has become usable.
func (r *Registry) CountQuotas() { r.usages.count() }

// quotas returns the quotas of the user and of the tenant with their current limits, even if the login is older than
// the current configuration.
func (r *Registry) quotas(u *User) []*Quota {
	t := u.Tenant
	return nonNil([]*Quota{
		r.usages.quota(u.state, t.Name, u.Name, u.root()), r.usages.quota(t.state, t.Name, "", t.root()),
	})
}

func nonNil(quotas []*Quota) []*Quota {
	return slices.DeleteFunc(quotas, func(q *Quota) bool { return q == nil })
}

// quotasIn returns the usages of a bucket with the current limits of a user.
func (r *Registry) quotasIn(b *s3client.Bucket, u *User) driver.Quotas {
	return driver.Quotas{Usages: r.usages.in(b), Limits: func() (limits []driver.Limit) {
		for _, q := range r.quotas(u) {
			limits = append(limits, driver.Limit{Usage: q.Usage, Bytes: q.Limit})
		}
		return limits
	}}
}

// A Usage is the used part of a quota.
type Usage struct {
	Used, Limit int64 // in bytes
	Known       bool  // false until the objects have been counted
}

// usage returns the usage of the quota with the least space left for a user, or nil if no quota applies.
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
