package server

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/s3client"
)

// recountEvery is how long the counts of quotas, which know what this process stores and deletes, may go without what others do. A count
// takes a request for each 1,000 objects.
const recountEvery = time.Hour

// A quota bounds what is stored in a bucket below a prefix, of a tenant or of one of its users.
type quota struct {
	*driver.Quota
	bucket *s3client.Bucket
	prefix string
	user   string // empty for the tenant's
}

// newQuota returns nil for a limit of 0, which is none.
func newQuota(b *s3client.Bucket, prefix, user string, limit int64) *quota {
	if limit == 0 {
		return nil
	}
	return &quota{driver.NewQuota(b.Client, b.Name, prefix, limit), b, prefix, user}
}

// quotas are those of all tenants and users.
func (d *directory) quotas() []*quota {
	var all []*quota
	for _, t := range d.tenants {
		all = append(all, t.quota)
		for _, u := range t.users {
			all = append(all, u.quota)
		}
	}
	return nonNil(all...)
}

// quotas are those that hold for a user: the user's own and the tenant's.
func (u *user) quotas() []*quota { return nonNil(u.quota, u.tenant.quota) }

// nonNil leaves out the quotas that there are not.
func nonNil(quotas ...*quota) []*quota {
	return slices.DeleteFunc(quotas, func(q *quota) bool { return q == nil })
}

// holds reports whether a quota counts what is stored in a bucket below a prefix.
func (q *quota) holds(b *s3client.Bucket, prefix string) bool {
	return q.bucket.Client == b.Client && q.bucket.Name == b.Name && strings.HasPrefix(prefix, q.prefix)
}

// quotasAt are those of a user's quotas that count what is stored in a bucket below a prefix.
func (u *user) quotasAt(b *s3client.Bucket, prefix string) driver.Quotas {
	var held driver.Quotas
	for _, q := range u.quotas() {
		if q.holds(b, prefix) {
			held = append(held, q.Quota)
		}
	}
	return held
}

// usage is that of the quota which has the least room for the user, as [control.Login.Quota] tells it.
func (u *user) usage() (used, limit int64, known bool) {
	room := func(q *quota) int64 {
		used, _ := q.Used()
		return q.Limit() - used
	}
	least := slices.MinFunc(u.quotas(), func(a, b *quota) int { return cmp.Compare(room(a), room(b)) })
	used, known = least.Used()
	return used, least.Limit(), known
}

// countQuotas counts what is stored, again and again until ctx ends.
func (s *Server) countQuotas(ctx context.Context) {
	runEvery(ctx, recountEvery, func() {
		forEachLimit(s.quotas, func(q *quota) error {
			err := q.Count(ctx)
			if err != nil && ctx.Err() == nil {
				s.log.Warn("what a quota counts could not be counted", "tenant", q.bucket.Tenant, "user", q.user, "err", err)
			}
			return err
		})
	})
}

// quotaMetrics shows the quotas to Prometheus, and what is used as soon as it is known.
type quotaMetrics struct {
	quotas      []*quota
	limit, used *prometheus.Desc
}

func newQuotaMetrics(quotas []*quota) *quotaMetrics {
	gauge := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("babelftp", "quota", name), help, []string{"tenant", "user"}, nil)
	}
	return &quotaMetrics{
		quotas: quotas,
		limit:  gauge("limit_bytes", "What may be stored, by tenant and user (empty for the tenant's own quota)."),
		used:   gauge("used_bytes", "What is stored of that."),
	}
}

// Describe implements [prometheus.Collector].
func (m *quotaMetrics) Describe(descs chan<- *prometheus.Desc) {
	descs <- m.limit
	descs <- m.used
}

// Collect implements [prometheus.Collector].
func (m *quotaMetrics) Collect(metrics chan<- prometheus.Metric) {
	show := func(desc *prometheus.Desc, q *quota, bytes int64) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(bytes), q.bucket.Tenant, q.user)
	}
	for _, q := range m.quotas {
		show(m.limit, q, q.Limit())
		if used, known := q.Used(); known {
			show(m.used, q, used)
		}
	}
}
