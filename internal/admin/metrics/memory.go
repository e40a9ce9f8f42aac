package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/driver"
)

// memory shows the budget in which uploads collect their parts.
type memory struct {
	budget *driver.Budget

	limit, used, waiting, waits, waited *prometheus.Desc
}

// NewMemory returns the collector of a budget.
func NewMemory(budget *driver.Budget) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "memory", name), help, nil, nil)
	}
	return &memory{
		budget: budget,
		limit: desc(
			"limit_bytes",
			"What the parts of uploads, and what downloads and listings fetch in advance, may hold (memory)."),
		used:    desc("used_bytes", "What they hold of that."),
		waiting: desc("waiting_parts", "Parts of uploads that wait for memory. Their clients wait too."),
		waits:   desc("waits_total", "How often a part has waited for memory."),
		waited:  desc("wait_seconds_total", "How long parts have waited for memory, once they have it or give up."),
	}
}

// Describe implements [prometheus.Collector].
func (m *memory) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{m.limit, m.used, m.waiting, m.waits, m.waited} {
		descs <- desc
	}
}

// Collect implements [prometheus.Collector].
func (m *memory) Collect(metrics chan<- prometheus.Metric) {
	w := m.budget.Waits()
	for _, of := range []struct {
		desc  *prometheus.Desc
		kind  prometheus.ValueType
		value float64
	}{
		{m.limit, prometheus.GaugeValue, float64(m.budget.Limit())},
		{m.used, prometheus.GaugeValue, float64(m.budget.Used())},
		{m.waiting, prometheus.GaugeValue, float64(w.Waiting)},
		{m.waits, prometheus.CounterValue, float64(w.Total)},
		{m.waited, prometheus.CounterValue, w.Time.Seconds()},
	} {
		metrics <- prometheus.MustNewConstMetric(of.desc, of.kind, of.value)
	}
}
