package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/internal/storage/s3client"
)

// buckets shows which buckets can be used, as soon as that is known.
type buckets struct {
	all func() []*s3client.Bucket
	up  *prometheus.Desc
}

// CollectBuckets returns the collector of what [s3client.Bucket.Up] tells of buckets.
func CollectBuckets(all func() []*s3client.Bucket) prometheus.Collector {
	return &buckets{all: all, up: prometheus.NewDesc(
		"babelftp_bucket_up",
		"1 if the bucket of a tenant, or of one of its folders, could be used at the last check, else 0.",
		[]string{"tenant", "folder"}, nil,
	)}
}

// Describe implements [prometheus.Collector].
func (m *buckets) Describe(descs chan<- *prometheus.Desc) { descs <- m.up }

// Collect implements [prometheus.Collector].
func (m *buckets) Collect(metrics chan<- prometheus.Metric) {
	for _, b := range m.all() {
		known, err := b.Up()
		if !known {
			continue
		}
		value := 0.0
		if err == nil {
			value = 1
		}
		metrics <- prometheus.MustNewConstMetric(m.up, prometheus.GaugeValue, value, b.Tenant, b.Folder)
	}
}
