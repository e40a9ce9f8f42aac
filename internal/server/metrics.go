package server

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	measure "github.com/babelftp/babelftp/internal/admin/metrics"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/passive"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/users/account"
)

// metrics counts what happens. It watches the control connections.
type metrics struct {
	report.Silent
	registry *registry
	tenants  *measure.Tenants
	*measure.Transfers
	s3 *measure.Requests

	sessions      prometheus.Gauge
	sessionsTotal prometheus.Counter
	logins        *measure.TenantCounter
	refusals      *measure.TenantCounter
	refusalsOnly  *prometheus.Registry // for administrators
	bans          *prometheus.CounterVec
	replies       *prometheus.CounterVec
	languages     *prometheus.CounterVec
	auditLost     *prometheus.CounterVec
	noHeader      prometheus.Counter
	missed        prometheus.Counter
	acme          *prometheus.CounterVec
	events        *measure.TenantCounter

	reloads                               *prometheus.CounterVec
	reloadSuccess, reloadTime, configHash prometheus.Gauge
	refusedTexts                          prometheus.Gauge
}

var _ report.Observer = (*metrics)(nil)

// A registry remembers its collectors, so that a test can compare all that they may show with the documents.
type registry struct {
	*prometheus.Registry
	collectors []prometheus.Collector
}

// MustRegister implements [prometheus.Registerer].
func (r *registry) MustRegister(cs ...prometheus.Collector) {
	r.Registry.MustRegister(cs...)
	r.collectors = append(r.collectors, cs...)
}

func newMetrics(version string) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "babelftp", Name: name, Help: help}, labels)
	}
	tenants := &measure.Tenants{}
	m := &metrics{
		registry:  &registry{Registry: prometheus.NewRegistry()},
		tenants:   tenants,
		Transfers: measure.NewTransfers(tenants),
		s3:        measure.NewRequests(tenants),
		sessions: prometheus.NewGauge(
			prometheus.GaugeOpts{Namespace: "babelftp", Name: "sessions", Help: "Control connections that are open."}),
		sessionsTotal: prometheus.NewCounter(
			prometheus.CounterOpts{Namespace: "babelftp", Name: "sessions_total", Help: "Control connections so far."}),
		logins: tenants.NewCounter(
			"logins_total",
			"Logins, by tenant (empty where it is not known) and result (accepted, refused, abandoned by the client "+
				"before it was decided, failed by an error).", "result"),
		refusals: tenants.NewCounter(
			"refusals_total",
			"What a limit has refused or ended, by tenant (empty where the limit is the server's) and limit (its "+
				"key, or descriptors).", "limit"),
		bans: counter("bans_total", "Bans so far, by kind (address, network, user).", "kind"),
		replies: counter(
			"commands_total",
			"Replies to commands, by command (other for one that the server does not know, empty for what is none) "+
				"and code.", "command", "code"),
		languages: counter("replies_total", "Replies to commands, by language (its tag).", "language"),
		events: tenants.NewCounter(
			"webhook_events_total", "Events that a webhook got or not, by tenant and result (delivered, postponed).",
			"result"),
		auditLost: counter(
			"audit_lines_lost_total", "Lines of the audit log that a destination (file, stdout, webhook) did not get.",
			"destination"),
		acme: counter(
			"acme_certificates_total", "Certificates that ACME has obtained or not, by result (obtained, failed).",
			"result"),
	}
	m.noHeader = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "babelftp", Name: "proxy_protocol_refused_total",
		Help: "Connections from proxy_protocol.trusted that had no PROXY header.",
	})
	m.missed = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "babelftp", Name: "data_connections_missed_total",
		Help: "Sessions whose client did not connect in time to the passive port that it got.",
	})
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "babelftp", Name: name, Help: help})
	}
	m.reloads = counter(
		"config_reloads_total", "Configurations that were read while the server runs, by result (accepted, refused).",
		"result")
	m.reloadSuccess = gauge(
		"config_reload_success",
		"1 if the last configuration that was read is in use, 0 if it was refused and the one before stays.")
	m.reloadTime = gauge(
		"config_reload_success_timestamp_seconds", "When the configuration in use was read, in seconds since 1970.")
	m.configHash = gauge(
		"config_hash",
		"Hash of the configuration in use with all files that it names. Replicas with the same files have the same.")
	m.refusedTexts = gauge(
		"config_refused_texts",
		"What is wrong with texts (locales_dir, messages) of the configuration in use. The built-in ones serve in "+
			"their place.")
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "babelftp", Name: "build_info", Help: "Always 1, with the version.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	// Prometheus sees no increase in the first value of a series, so those of alerts begin with 0.
	for _, limit := range []string{"sessions", "descriptors", "passive.ports"} {
		m.refusals.Add(0, "", limit)
	}
	for _, kind := range []string{"address", "network", "user"} {
		m.bans.WithLabelValues(kind)
	}
	m.acme.WithLabelValues("failed")
	m.refusalsOnly = prometheus.NewRegistry()
	m.refusalsOnly.MustRegister(m.refusals)
	m.registry.MustRegister(
		m.sessions, m.sessionsTotal, m.logins, m.refusals, m.bans, m.replies, m.languages, m.Transfers, m.auditLost,
		m.noHeader, m.missed, m.acme, m.events, build,
		m.reloads, m.reloadSuccess, m.reloadTime, m.configHash, m.refusedTexts,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.registry.MustRegister(m.s3.Collectors()...)
	return m
}

// passivePorts is the gauge of ports that are in use.
func passivePorts(ports *passive.Ports) prometheus.Collector {
	return prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Namespace: "babelftp", Name: "passive_ports",
			Help: "Passive ports on which sessions wait for their clients."},
		func() float64 { return float64(ports.InUse()) },
	)
}

// handler serves the metrics to Prometheus.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// SessionOpened implements [report.Observer].
func (m *metrics) SessionOpened(context.Context) {
	m.sessions.Inc()
	m.sessionsTotal.Inc()
}

// SessionClosed implements [report.Observer].
func (m *metrics) SessionClosed() { m.sessions.Dec() }

// LoggedIn implements [report.Observer].
func (m *metrics) LoggedIn(login *account.Login, err error) {
	result, tenant := "failed", account.FailedTenant(err)
	_, full := errors.AsType[*account.FullError](err)
	switch {
	case err == nil:
		result, tenant = "accepted", login.Tenant.Name
	case full || errors.Is(err, account.ErrLoginRefused):
		result = "refused"
	case errors.Is(err, account.ErrAbandoned):
		result = "abandoned"
	}
	m.logins.Add(1, tenant, result)
}

// Refused implements [report.Observer].
func (m *metrics) Refused(tenant, limit string) { m.refusals.Add(1, tenant, limit) }

// proxyRefused counts a connection without the PROXY header that it must have.
func (m *metrics) proxyRefused() { m.noHeader.Inc() }

// issued counts what an ACME authority has done.
func (m *metrics) issued(err error) {
	result := "obtained"
	if err != nil {
		result = "failed"
	}
	m.acme.WithLabelValues(result).Inc()
}

// reloaded counts a configuration that was read while the server runs, and shows whether it is in use.
func (m *metrics) reloaded(hash [sha256.Size]byte, err error) {
	if err != nil {
		m.reloads.WithLabelValues("refused").Inc()
		m.reloadSuccess.Set(0)
		return
	}
	m.reloads.WithLabelValues("accepted").Inc()
	m.inUse(hash)
}

// inUse shows which configuration is in use, by its hash.
func (m *metrics) inUse(hash [sha256.Size]byte) {
	m.reloadSuccess.Set(1)
	m.reloadTime.SetToCurrentTime()
	const exact = 6 // bytes of a number that a float64 holds
	var number [8]byte
	copy(number[8-exact:], hash[:exact])
	m.configHash.Set(float64(binary.BigEndian.Uint64(number[:])))
}

// auditLinesLost returns what counts the lines that a destination of the audit log did not get.
func (m *metrics) auditLinesLost(destination string) func(lines int) {
	counter := m.auditLost.WithLabelValues(destination)
	return func(lines int) { counter.Add(float64(lines)) }
}

// serve shows the tenants of a configuration, and those only.
func (m *metrics) serve(cfg *config.Config) {
	m.tenants.Replace(maps.Keys(cfg.Tenants))
	for name, t := range cfg.Tenants {
		m.logins.Add(0, name, "failed")
		if t.Webhook.URL != "" {
			m.told(name, 0, true)
			m.told(name, 0, false)
		}
	}
}

// told counts events that a webhook got or not.
func (m *metrics) told(tenant string, events int, ok bool) {
	result := "delivered"
	if !ok {
		result = "postponed"
	}
	m.events.Add(events, tenant, result)
}

func (m *metrics) banned(kind string) { m.bans.WithLabelValues(kind).Inc() }

// CommandEnded implements [report.Observer].
func (m *metrics) CommandEnded(_ context.Context, o *report.Outcome) {
	if o.Transfer != nil {
		m.End(o.Transfer)
	}
	m.replies.WithLabelValues(o.Name, strconv.Itoa(o.Code)).Inc()
	m.languages.WithLabelValues(o.Language.String()).Inc()
}

// Transferring implements [report.Observer].
func (m *metrics) Transferring(t *report.Transfer) { m.Begin(t) }
