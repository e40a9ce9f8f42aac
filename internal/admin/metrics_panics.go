package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/internal/base/panics"
)

// CollectPanics returns the collector of the panics that a guard has met.
func CollectPanics(guard *panics.Guard) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: namespace, Name: "panics_total",
		Help: "Bugs that have ended a session, a data connection or a relay. The log has their stacks; report them.",
	}, func() float64 { return float64(guard.Count()) })
}
