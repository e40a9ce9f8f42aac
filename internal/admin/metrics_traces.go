package admin

import "github.com/prometheus/client_golang/prometheus"

// traces shows what became of spans.
type traces struct {
	spans       func() (ended, sent int64)
	ended, sent *prometheus.Desc
}

// CollectTraces returns the collector of a function that tells how many spans have ended, and how many the collector of
// traces has got.
func CollectTraces(spans func() (ended, sent int64)) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "trace_spans", name), help, nil, nil)
	}
	return &traces{
		spans: spans,
		ended: desc("ended_total", "Spans of traced sessions that have ended."),
		sent: desc(
			"sent_total",
			"Spans that the collector of traces has taken. Of the others some may still wait, and the rest are lost."),
	}
}

// Describe implements [prometheus.Collector].
func (m *traces) Describe(descs chan<- *prometheus.Desc) {
	descs <- m.ended
	descs <- m.sent
}

// Collect implements [prometheus.Collector].
func (m *traces) Collect(metrics chan<- prometheus.Metric) {
	ended, sent := m.spans()
	metrics <- prometheus.MustNewConstMetric(m.ended, prometheus.CounterValue, float64(ended))
	metrics <- prometheus.MustNewConstMetric(m.sent, prometheus.CounterValue, float64(sent))
}
