package admin

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/internal/report"
)

const namespace = "babelftp"

// transferMetrics exports the transfers on data connections. The bytes of running transfers count as they
// move. They are read on each scrape, so that counting costs the transfers nothing. Its methods are safe for
// concurrent use.
type transferMetrics struct {
	tenants   *tenantMetrics
	total     *TenantCounter
	durations *prometheus.HistogramVec
	firstByte *prometheus.HistogramVec
	bytes     *prometheus.Desc
	active    *prometheus.Desc

	mu      sync.Mutex
	running map[*report.Transfer]transferKind
	ended   map[transferKind]int64 // bytes of ended transfers; has a key for each kind that ever occurred
	moved   map[string]int64       // bytes of ended transfers of all tenants, by direction
	failed  int64                  // transfers of all tenants that were not complete
}

// A transferKind identifies the series of a transfer.
type transferKind struct{ tenant, direction string }

// newTransferMetrics returns a collector without transfers.
func newTransferMetrics(tenants *tenantMetrics) *transferMetrics {
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Namespace: namespace, Subsystem: "transfer", Name: name, Help: help,
				Buckets: buckets}, []string{"direction"})
	}
	of := []string{tenantLabel, "direction"}
	m := &transferMetrics{
		tenants: tenants,
		total: tenants.NewCounter("transfers_total",
			"Transfers (upload, download, listing) that were complete or failed.", "direction", "result"),
		durations: histogram("duration_seconds", "Time from the command to the reply.",
			prometheus.ExponentialBuckets(0.01, 4, 11)), // up to three hours
		firstByte: histogram(
			"first_byte_seconds", "Time from the command to the first byte on the data connection.",
			prometheus.ExponentialBuckets(0.002, 2, 15)), // up to 33 seconds
		bytes: prometheus.NewDesc(
			"babelftp_transfer_bytes_total", "Bytes on data connections, as they move.", of,
			nil),
		active: prometheus.NewDesc(
			"babelftp_transfers_active", "Transfers that run.", of, nil),
		running: map[*report.Transfer]transferKind{},
		ended:   map[transferKind]int64{},
		moved:   map[string]int64{},
	}
	tenants.forget = append(tenants.forget, m.forget)
	return m
}

// forget deletes the series of a tenant. Its running transfers then count for the tenant with the empty name.
func (m *transferMetrics) forget(tenant string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for t, kind := range m.running {
		if kind.tenant == tenant {
			m.begin(t, "")
		}
	}
	maps.DeleteFunc(m.ended, func(kind transferKind, _ int64) bool { return kind.tenant == tenant })
}

// Begin counts a transfer as running until End.
func (m *transferMetrics) Begin(t *report.Transfer) {
	m.tenants.count(t.Tenant, func(label string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.begin(t, label)
	})
}

func (m *transferMetrics) begin(t *report.Transfer, tenant string) {
	kind := transferKind{tenant, t.Direction()}
	m.running[t] = kind
	m.ended[kind] += 0
}

// End counts a transfer as ended, complete or not.
func (m *transferMetrics) End(t *report.Transfer) {
	m.mu.Lock()
	kind := m.running[t]
	delete(m.running, t)
	m.ended[kind] += t.Bytes()
	m.moved[kind.direction] += t.Bytes()
	if !t.Complete {
		m.failed++
	}
	m.mu.Unlock()
	result := "complete"
	if !t.Complete {
		result = "failed"
	}
	m.total.Add(1, kind.tenant, kind.direction, result)
	m.durations.WithLabelValues(kind.direction).Observe(t.Elapsed().Seconds())
	if first := t.FirstByte(); first > 0 {
		m.firstByte.WithLabelValues(kind.direction).Observe(first.Seconds())
	}
}

// totals returns the bytes and failures of all transfers, including the running ones.
func (m *transferMetrics) totals() Totals {
	m.mu.Lock()
	defer m.mu.Unlock()
	bytes := maps.Clone(m.moved)
	for t, kind := range m.running {
		bytes[kind.direction] += t.Bytes()
	}
	return Totals{
		UploadedBytes: bytes[string(report.Upload)], DownloadedBytes: bytes[string(report.Download)], Errors: m.failed,
	}
}

// Describe implements [prometheus.Collector].
func (m *transferMetrics) Describe(descs chan<- *prometheus.Desc) {
	m.total.Describe(descs)
	m.durations.Describe(descs)
	m.firstByte.Describe(descs)
	descs <- m.bytes
	descs <- m.active
}

// Collect implements [prometheus.Collector].
func (m *transferMetrics) Collect(metrics chan<- prometheus.Metric) {
	m.total.Collect(metrics)
	m.durations.Collect(metrics)
	m.firstByte.Collect(metrics)
	m.mu.Lock()
	defer m.mu.Unlock()
	active := map[transferKind]int{}
	bytes := map[transferKind]int64{}
	for t, kind := range m.running {
		active[kind]++
		bytes[kind] += t.Bytes()
	}
	for kind, ended := range m.ended {
		metrics <- prometheus.MustNewConstMetric(
			m.bytes, prometheus.CounterValue, float64(ended+bytes[kind]), kind.tenant, kind.direction)
		metrics <- prometheus.MustNewConstMetric(
			m.active, prometheus.GaugeValue, float64(active[kind]), kind.tenant, kind.direction)
	}
}
