package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/internal/users/account"
)

// quotas shows the quotas, and what is used as soon as it is known.
type quotas struct {
	all         func() []*account.Quota
	limit, used *prometheus.Desc
}

// CollectQuotas returns the collector of quotas.
func CollectQuotas(all func() []*account.Quota) prometheus.Collector {
	gauge := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(
			prometheus.BuildFQName(namespace, "quota", name), help, []string{"tenant", "user"}, nil)
	}
	return &quotas{
		all:   all,
		limit: gauge("limit_bytes", "Quota; without a user, of the tenant."),
		used:  gauge("used_bytes", "Stored bytes that count for the quota."),
	}
}

// Describe implements [prometheus.Collector].
func (m *quotas) Describe(descs chan<- *prometheus.Desc) {
	descs <- m.limit
	descs <- m.used
}

// Collect implements [prometheus.Collector].
func (m *quotas) Collect(metrics chan<- prometheus.Metric) {
	show := func(desc *prometheus.Desc, q *account.Quota, bytes int64) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(bytes), q.Tenant, q.User)
	}
	for _, q := range m.all() {
		show(m.limit, q, q.Limit())
		if used, known := q.Used(); known {
			show(m.used, q, used)
		}
	}
}
