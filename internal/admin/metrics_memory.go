package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/driver"
)

// memory shows the budget in which uploads collect their parts.
type memory struct {
	budget *driver.Budget

	limit, used, waiting, waits, waited *prometheus.Desc
}

// CollectMemory returns the collector of a budget.
func CollectMemory(budget *driver.Budget) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "memory", name), help, nil, nil)
	}
	return &memory{
		budget:  budget,
		limit:   desc("limit_bytes", "Memory for parts of uploads, and for what is read ahead (memory)."),
		used:    desc("used_bytes", "Memory in use, of babelftp_memory_limit_bytes."),
		waiting: desc("waiting_parts", "Parts of uploads that wait for memory. Their clients wait too."),
		waits:   desc("waits_total", "Parts of uploads that had to wait for memory."),
		waited:  desc("wait_seconds_total", "Time that parts of uploads waited for memory."),
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
