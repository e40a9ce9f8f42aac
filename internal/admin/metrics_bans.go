package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/internal/users/bans"
)

// activeBans shows the bans that hold.
type activeBans struct {
	list   *bans.List
	active *prometheus.Desc
}

// CollectBans returns the collector of a list.
func CollectBans(list *bans.List) prometheus.Collector {
	return &activeBans{list, prometheus.NewDesc(
		"babelftp_bans_active", "Active bans of this kind: address, network or user.", []string{"kind"}, nil)}
}

// Describe implements [prometheus.Collector].
func (m *activeBans) Describe(descs chan<- *prometheus.Desc) { descs <- m.active }

// Collect implements [prometheus.Collector].
func (m *activeBans) Collect(metrics chan<- prometheus.Metric) {
	count := map[string]int{"address": 0, "network": 0, "user": 0}
	for _, b := range m.list.All() {
		count[b.Kind()]++
	}
	for kind, n := range count {
		metrics <- prometheus.MustNewConstMetric(m.active, prometheus.GaugeValue, float64(n), kind)
	}
}
