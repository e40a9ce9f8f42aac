package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/internal/storage/s3client"
)

// uploads shows the multipart uploads of buckets, as their journals count them.
type uploads struct {
	buckets func() []*s3client.Bucket

	open, interrupted, swept *prometheus.Desc
}

// CollectUploads returns the collector of the uploads of buckets.
func CollectUploads(buckets func() []*s3client.Bucket) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "uploads", name), help, []string{"tenant"}, nil)
	}
	return &uploads{
		buckets: buckets,
		open:    desc("open", "Multipart uploads on which this process works."),
		interrupted: desc(
			"interrupted_total",
			"Multipart uploads that were interrupted and can be resumed."),
		swept: desc(
			"swept_total", "Abandoned multipart uploads that this process has removed."),
	}
}

// Describe implements [prometheus.Collector].
func (m *uploads) Describe(descs chan<- *prometheus.Desc) {
	descs <- m.open
	descs <- m.interrupted
	descs <- m.swept
}

// Collect implements [prometheus.Collector]. A bucket that could not be used yet has no journal.
func (m *uploads) Collect(metrics chan<- prometheus.Metric) {
	type counts struct{ open, interrupted, swept int64 }
	byTenant := map[string]counts{}
	for _, b := range m.buckets() {
		c := byTenant[b.Tenant]
		if b.Usable() && b.Journal != nil {
			s := b.Journal.Stats()
			c.open, c.interrupted, c.swept = c.open+s.Open, c.interrupted+s.Interrupted, c.swept+s.Swept
		}
		byTenant[b.Tenant] = c
	}
	for tenant, c := range byTenant {
		metrics <- prometheus.MustNewConstMetric(m.open, prometheus.GaugeValue, float64(c.open), tenant)
		metrics <- prometheus.MustNewConstMetric(m.interrupted, prometheus.CounterValue, float64(c.interrupted), tenant)
		metrics <- prometheus.MustNewConstMetric(m.swept, prometheus.CounterValue, float64(c.swept), tenant)
	}
}
