package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/internal/certs"
)

// expiry shows when certificates expire.
type expiry struct {
	set  *certs.Set
	ends *prometheus.Desc
}

// CollectCertificates returns the collector of certificates.
func CollectCertificates(set *certs.Set) prometheus.Collector {
	return &expiry{set: set, ends: prometheus.NewDesc(
		"babelftp_tls_certificate_expiry_timestamp_seconds",
		"When a certificate expires, in seconds since 1970. Its host is its first name.",
		[]string{"tenant", "host"}, nil,
	)}
}

// Describe implements [prometheus.Collector].
func (m *expiry) Describe(descs chan<- *prometheus.Desc) { descs <- m.ends }

// Collect implements [prometheus.Collector]. Files that have changed are read first.
func (m *expiry) Collect(metrics chan<- prometheus.Metric) {
	for _, c := range m.set.Shown() {
		metrics <- prometheus.MustNewConstMetric(
			m.ends, prometheus.GaugeValue, float64(c.Ends.Unix()), c.Tenant, c.Host)
	}
}
