package server

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/internal/s3client"
)

// bucketUsable does for a bucket what waits until it can be used: it removes abandoned uploads and counts quotas.
func (s *Server) bucketUsable(ctx context.Context, b *s3client.Bucket) {
	select {
	case s.upkeep <- struct{}{}:
		defer func() { <-s.upkeep }()
	case <-ctx.Done():
		return
	}
	if s.cfg.AbandonedUploads > 0 {
		_ = s.sweepBucket(ctx, b) // logged
	}
	for _, q := range s.tenants.Quotas() {
		if q.In(b) {
			_ = s.countQuota(ctx, q) // logged
		}
	}
}

// bucketMetrics shows Prometheus which buckets can be used, as soon as that is known.
type bucketMetrics struct {
	buckets []*s3client.Bucket
	up      *prometheus.Desc
}

func newBucketMetrics(buckets []*s3client.Bucket) *bucketMetrics {
	return &bucketMetrics{buckets: buckets, up: prometheus.NewDesc(
		"babelftp_bucket_up", "1 if the bucket of a tenant or of one of its folders (empty for the tenant's own) could be used at the last look, else 0.",
		[]string{"tenant", "folder"}, nil,
	)}
}

// Describe implements [prometheus.Collector].
func (m *bucketMetrics) Describe(descs chan<- *prometheus.Desc) { descs <- m.up }

// Collect implements [prometheus.Collector].
func (m *bucketMetrics) Collect(metrics chan<- prometheus.Metric) {
	for _, b := range m.buckets {
		up, known := b.Up()
		if !known {
			continue
		}
		value := 0.0
		if up {
			value = 1
		}
		metrics <- prometheus.MustNewConstMetric(m.up, prometheus.GaugeValue, value, b.Tenant, b.Folder)
	}
}
