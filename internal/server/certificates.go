package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/internal/certificates"
)

// warnEvery is the time between two warnings of a certificate that ends soon.
const warnEvery = 24 * time.Hour

// certificateMetrics shows Prometheus when certificates end.
type certificateMetrics struct {
	set  *certificates.Set
	ends *prometheus.Desc
}

func newCertificateMetrics(set *certificates.Set) *certificateMetrics {
	return &certificateMetrics{set: set, ends: prometheus.NewDesc(
		"babelftp_tls_certificate_expiry_timestamp_seconds",
		"When a certificate ends, in seconds since 1970, by tenant (empty for the server's) and host (its first name).",
		[]string{"tenant", "host"}, nil,
	)}
}

// Describe implements [prometheus.Collector].
func (m *certificateMetrics) Describe(descs chan<- *prometheus.Desc) { descs <- m.ends }

// Collect implements [prometheus.Collector]. Files that have changed are read first.
func (m *certificateMetrics) Collect(metrics chan<- prometheus.Metric) {
	for _, c := range m.set.Shown() {
		metrics <- prometheus.MustNewConstMetric(m.ends, prometheus.GaugeValue, float64(c.Ends.Unix()), c.Tenant, c.Host)
	}
}
