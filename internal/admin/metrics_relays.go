package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/internal/ftp/relay"
)

// RelayMetrics counts the data connections that replicas relay to each other. Its methods are safe for
// concurrent use.
type RelayMetrics struct {
	active         prometheus.Gauge
	total, refused *prometheus.CounterVec
}

var _ relay.Observer = (*RelayMetrics)(nil)

// NewRelayMetrics returns new metrics, with all series at 0.
func NewRelayMetrics() *RelayMetrics {
	m := &RelayMetrics{
		active: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "relays",
			Help: "Data connections that this replica passes on to another one at the moment.",
		}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "relays_total",
			Help: "Data connections that this replica has passed on: complete, failed, unmatched or unreachable.",
		}, []string{"result"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "relays_refused_total",
			Help: "Data connections of other replicas that this one has refused: no_peer, header, slice or too_many.",
		}, []string{"reason"}),
	}
	// Prometheus does not count the first value of a series as an increase.
	for _, result := range []relay.Result{relay.Complete, relay.Failed, relay.Unmatched, relay.Unreachable} {
		m.total.WithLabelValues(string(result))
	}
	for _, reason := range []relay.Reason{relay.NoPeer, relay.NoHeader, relay.WrongWay, relay.TooMany} {
		m.refused.WithLabelValues(string(reason))
	}
	return m
}

// RelayOpened implements [relay.Observer].
func (m *RelayMetrics) RelayOpened() { m.active.Inc() }

// RelayClosed implements [relay.Observer].
func (m *RelayMetrics) RelayClosed(result relay.Result) {
	m.total.WithLabelValues(string(result)).Inc()
	m.active.Dec() // after the counter, so that a scrape never misses a relay
}

// RelayRefused implements [relay.Observer].
func (m *RelayMetrics) RelayRefused(reason relay.Reason) {
	m.refused.WithLabelValues(string(reason)).Inc()
}

// Collectors returns the collectors to register.
func (m *RelayMetrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.active, m.total, m.refused}
}
