package server

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/internal/panics"
	"github.com/babelftp/babelftp/internal/tenant"
)

// recountEvery is how long the counts of quotas, which know what this process stores and deletes, may go without what others do. A count
// takes a request for each 1,000 objects.
const recountEvery = time.Hour

// countQuotas counts what is stored, again and again until ctx ends. The first count of a bucket is that of bucketUsable. It counts the quota of a user whom a service brought at once.
func (s *Server) countQuotas(ctx context.Context) {
	go func() {
		for {
			select {
			case q := <-s.tenants.NewQuotas():
				_ = s.countQuota(ctx, q) // logged
			case <-ctx.Done():
				return
			}
		}
	}()
	runAfter(ctx, recountEvery, func() {
		forEachLimit(s.tenants.Quotas(), func(q *tenant.Quota) error {
			if !q.Countable() {
				return nil
			}
			return s.countQuota(ctx, q)
		})
	})
}

func (s *Server) countQuota(ctx context.Context, q *tenant.Quota) error {
	err := panics.Catch(func() error { return q.Count(ctx) })
	if err != nil && ctx.Err() == nil {
		s.log.Warn("files of a quota could not be counted; the next count tries again", "tenant", q.Tenant, "user", q.User, "err", err)
	}
	return err
}

// quotaMetrics shows the quotas to Prometheus, and what is used as soon as it is known.
type quotaMetrics struct {
	quotas      func() []*tenant.Quota
	limit, used *prometheus.Desc
}

func newQuotaMetrics(quotas func() []*tenant.Quota) *quotaMetrics {
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
	show := func(desc *prometheus.Desc, q *tenant.Quota, bytes int64) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(bytes), q.Tenant, q.User)
	}
	for _, q := range m.quotas() {
		show(m.limit, q, q.Limit())
		if used, known := q.Used(); known {
			show(m.used, q, used)
		}
	}
}
