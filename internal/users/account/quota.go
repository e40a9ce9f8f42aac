package account

import (
	"cmp"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/storage/s3client"
)

// A Quota bounds what is stored in a bucket below a prefix, of a tenant or of one of its users.
type Quota struct {
	*driver.Quota
	Tenant string
	User   string // empty for the tenant's own quota

	bucket *s3client.Bucket
	prefix string
	limit  int64 // of Quota, from when the configuration is in use
}

// newQuota is the quota of a tenant, or of a user of it. It is nil for a limit of 0, which is none.
func newQuota(b *s3client.Bucket, prefix, user string, limit value.Size) *Quota {
	if limit == 0 {
		return nil
	}
	return &Quota{
		Quota:  driver.NewQuota(b.Client, b.Name, prefix, int64(limit)),
		Tenant: b.Tenant, User: user, bucket: b, prefix: prefix, limit: int64(limit),
	}
}

// Quotas are those of all tenants and users. Users from a directory or hook are among them as long as the
// process remembers them.
func (r *Registry) Quotas() []*Quota {
	var all []*Quota
	for _, t := range r.current.Load().tenants {
		all = append(all, t.quota)
		for _, u := range t.all() {
			all = append(all, u.quota)
		}
	}
	return nonNil(all...)
}

// NewQuotas are the quotas of users who have just come from a directory or hook. They must be counted.
func (r *Registry) NewQuotas() <-chan *Quota { return r.newQuotas }

// quotas are those that hold for a user: the user's own and the tenant's.
func (u *User) quotas() []*Quota { return nonNil(u.quota, u.Tenant.quota) }

// nonNil leaves out the quotas that there are not.
func nonNil(quotas ...*Quota) []*Quota {
	return slices.DeleteFunc(quotas, func(q *Quota) bool { return q == nil })
}

// In reports whether the quota counts what is stored in a bucket.
func (q *Quota) In(b *s3client.Bucket) bool { return q.bucket == b }

// Countable reports whether the bucket of the quota can be used.
func (q *Quota) Countable() bool { return q.bucket.Usable() }

// holds reports whether a quota counts what is stored in a bucket below a prefix.
func (q *Quota) holds(b *s3client.Bucket, prefix string) bool {
	return q.bucket.Client == b.Client && q.bucket.Name == b.Name && strings.HasPrefix(prefix, q.prefix)
}

// quotasAt are those of a user's quotas that count what is stored in a bucket below a prefix.
func (u *User) quotasAt(b *s3client.Bucket, prefix string) []*driver.Quota {
	var held []*driver.Quota
	for _, q := range u.quotas() {
		if q.holds(b, prefix) {
			held = append(held, q.Quota)
		}
	}
	return held
}

// usage is that of the quota which has the least room for the user, as [Login.Usage] tells it.
func (u *User) usage() (used, limit int64, known bool) {
	room := func(q *Quota) int64 {
		used, _ := q.Used()
		return q.Limit() - used
	}
	least := slices.MinFunc(u.quotas(), func(a, b *Quota) int { return cmp.Compare(room(a), room(b)) })
	used, known = least.Used()
	return used, least.Limit(), known
}
