package admin

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/babelftp/babelftp/internal/base/inspect"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/users/account"
)

// Metrics holds the metrics of a server. As a [report.Observer] it counts what sessions do. Other parts
// register their own collectors with MustRegister.
type Metrics struct {
	report.Silent
	*prometheus.Registry
	S3 *requestMetrics

	collectors []prometheus.Collector // all registered ones
	tenants    *tenantMetrics
	transfers  *transferMetrics

	sessions      prometheus.Gauge
	sessionsTotal prometheus.Counter
	logins        *TenantCounter
	refusals      *TenantCounter
	refusalsOnly  *prometheus.Registry // has only refusals, for RefusalsByLimit
	bans          *prometheus.CounterVec
	replies       *prometheus.CounterVec
	languages     *prometheus.CounterVec
	auditLost     *prometheus.CounterVec
	noHeader      prometheus.Counter
	missed        prometheus.Counter
	acme          *prometheus.CounterVec
	events        *TenantCounter

	open                      atomic.Int64 // sessions
	accepted, refused, failed atomic.Int64 // logins, for Totals; series of removed tenants do not count

	reloads                               *prometheus.CounterVec
	reloadSuccess, reloadTime, configHash prometheus.Gauge
	refusedTexts                          prometheus.Gauge
}

var _ report.Observer = (*Metrics)(nil)

// MustRegister implements [prometheus.Registerer].
func (m *Metrics) MustRegister(cs ...prometheus.Collector) {
	m.Registry.MustRegister(cs...)
	m.collectors = append(m.collectors, cs...)
}

// Collectors returns all registered collectors. A test compares their metrics with the documentation.
func (m *Metrics) Collectors() []prometheus.Collector { return m.collectors }

// NewMetrics returns the metrics of a server with this version.
func NewMetrics(version string) *Metrics {
	count := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
	}
	tenants := &tenantMetrics{}
	m := &Metrics{
		Registry:      prometheus.NewRegistry(),
		tenants:       tenants,
		transfers:     newTransferMetrics(tenants),
		S3:            newRequestMetrics(tenants),
		sessions:      gauge("sessions", "Open control connections."),
		sessionsTotal: count("sessions_total", "Control connections since the start."),
		logins: tenants.NewCounter(
			"logins_total", "Logins: accepted, refused, failed because of an error, or abandoned by the client.", "result"),
		refusals: tenants.NewCounter(
			"refusals_total", "What a limit (its key, or descriptors) or inspect refused or ended.", "limit"),
		bans:      counter("bans_total", "Bans since the start.", "kind"),
		replies:   counter("commands_total", "Replies to each command; other: unknown ones, empty: none.", "command", "code"),
		languages: counter("replies_total", "Replies in each language.", "language"),
		auditLost: counter(
			"audit_lines_lost_total", "Lines of the audit log that were lost on the way to file, stdout or webhook.",
			"destination"),
		noHeader: count(
			"proxy_protocol_refused_total", "Connections from proxy_protocol.trusted that had no PROXY header."),
		missed: count(
			"data_connections_missed_total", "Sessions whose client did not connect to its passive port in time."),
		acme: counter(
			"acme_certificates_total", "Attempts to obtain a certificate by ACME: obtained or failed.", "result"),
		events:  tenants.NewCounter("webhook_events_total", "Events for a webhook: delivered or postponed.", "result"),
		reloads: counter("config_reloads_total", "Reloads of the configuration: accepted or refused.", "result"),
		reloadSuccess: gauge(
			"config_reload_success",
			"1 if the last configuration that was read is in use, 0 if it was refused and the previous one is."),
		reloadTime: gauge(
			"config_reload_success_timestamp_seconds", "When the configuration in use was read, in seconds since 1970."),
		configHash: gauge(
			"config_hash", "Hash of the configuration in use and of all files that it names, to compare replicas."),
		refusedTexts: gauge(
			"config_refused_texts",
			"Wrong texts (locales_dir, messages) in the configuration in use. Built-in texts replace them."),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Always 1, with the version.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	// Prometheus does not count the first value of a series as an increase, so series that alerts use start
	// at 0.
	for _, limit := range limits.ServerWide() {
		m.refusals.Add(0, "", limit)
	}
	for _, kind := range []string{"address", "network", "user"} {
		m.bans.WithLabelValues(kind)
	}
	m.acme.WithLabelValues("failed")
	m.refusalsOnly = prometheus.NewRegistry()
	m.refusalsOnly.MustRegister(m.refusals)
	m.MustRegister(
		m.sessions, m.sessionsTotal, m.logins, m.refusals, m.bans, m.replies, m.languages, m.transfers, m.auditLost,
		m.noHeader, m.missed, m.acme, m.events, build,
		m.reloads, m.reloadSuccess, m.reloadTime, m.configHash, m.refusedTexts,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.MustRegister(m.S3.Collectors()...)
	return m
}

// Handler returns the handler that serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{Registry: m.Registry})
}

// SessionOpened implements [report.Observer].
func (m *Metrics) SessionOpened(context.Context) {
	m.sessions.Inc()
	m.open.Add(1)
	m.sessionsTotal.Inc()
}

// SessionClosed implements [report.Observer].
func (m *Metrics) SessionClosed() {
	m.sessions.Dec()
	m.open.Add(-1)
}

// LoggedIn implements [report.Observer].
func (m *Metrics) LoggedIn(login *account.Login, err error) {
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
	switch result {
	case "accepted":
		m.accepted.Add(1)
	case "refused":
		m.refused.Add(1)
	case "failed":
		m.failed.Add(1)
	}
	m.logins.Add(1, tenant, result)
}

// Totals returns the totals of the replica. Unlike the metrics, they also count tenants that were removed.
func (m *Metrics) Totals() Totals {
	t := m.transfers.totals()
	t.Sessions, t.Logins, t.FailedLogins = m.open.Load(), m.accepted.Load(), m.refused.Load()
	t.Errors += m.failed.Load() + m.S3.failures.Load()
	return t
}

// Refused implements [report.Observer].
func (m *Metrics) Refused(tenant, limit string) { m.refusals.Add(1, tenant, limit) }

// ProxyRefused counts a connection that lacked the required PROXY header.
func (m *Metrics) ProxyRefused() { m.noHeader.Inc() }

// Issued counts an attempt to obtain a certificate by ACME.
func (m *Metrics) Issued(err error) {
	result := "obtained"
	if err != nil {
		result = "failed"
	}
	m.acme.WithLabelValues(result).Inc()
}

// Reloaded counts a reload of the configuration, and records whether the new configuration is in use.
func (m *Metrics) Reloaded(hash [sha256.Size]byte, err error) {
	if err != nil {
		m.reloads.WithLabelValues("refused").Inc()
		m.reloadSuccess.Set(0)
		return
	}
	m.reloads.WithLabelValues("accepted").Inc()
	m.InUse(hash)
}

// InUse records the hash of the configuration in use.
func (m *Metrics) InUse(hash [sha256.Size]byte) {
	m.reloadSuccess.Set(1)
	m.reloadTime.SetToCurrentTime()
	const exact = 6 // bytes of a number that a float64 holds
	var number [8]byte
	copy(number[8-exact:], hash[:exact])
	m.configHash.Set(float64(binary.BigEndian.Uint64(number[:])))
}

// AuditLinesLost returns a function that counts lines of the audit log that a destination did not receive.
func (m *Metrics) AuditLinesLost(destination string) func(lines int) {
	counter := m.auditLost.WithLabelValues(destination)
	return func(lines int) { counter.Add(float64(lines)) }
}

// ShowTenants creates the series of the configured tenants and deletes the series of all others.
func (m *Metrics) ShowTenants(cfg *config.Config) {
	m.tenants.Replace(maps.Keys(cfg.Tenants))
	for name, t := range cfg.Tenants {
		m.logins.Add(0, name, "failed")
		if t.Webhook.URL != "" {
			m.WebhookEvents(name, 0, true)
			m.WebhookEvents(name, 0, false)
		}
	}
}

// WebhookEvents counts events that were delivered to a webhook, or postponed.
func (m *Metrics) WebhookEvents(tenant string, events int, ok bool) {
	result := "delivered"
	if !ok {
		result = "postponed"
	}
	m.events.Add(events, tenant, result)
}

// Banned counts a ban of this kind: address, network or user.
func (m *Metrics) Banned(kind string) { m.bans.WithLabelValues(kind).Inc() }

// CommandEnded implements [report.Observer].
func (m *Metrics) CommandEnded(_ context.Context, o *report.Outcome) {
	if o.Transfer != nil {
		m.transfers.End(o.Transfer)
		switch {
		case errors.Is(o.Err, inspect.ErrRefused):
			m.Refused(o.Transfer.Tenant, "inspect")
		case errors.Is(o.Err, inspect.ErrNotInspected):
			m.Refused(o.Transfer.Tenant, "inspect.on_failure")
		}
	}
	m.replies.WithLabelValues(o.Name, strconv.Itoa(o.Code)).Inc()
	m.languages.WithLabelValues(o.Language.String()).Inc()
}

// Missed counts a client that did not connect to its passive port in time.
func (m *Metrics) Missed() { m.missed.Inc() }

// RefusedTexts sets the number of invalid texts in the configuration in use.
func (m *Metrics) RefusedTexts(n int) { m.refusedTexts.Set(float64(n)) }

// Transferring implements [report.Observer].
func (m *Metrics) Transferring(t *report.Transfer) { m.transfers.Begin(t) }

// RefusalsByLimit returns the number of refusals so far, by limit.
func (m *Metrics) RefusalsByLimit() map[string]int64 {
	counts := map[string]int64{}
	families, _ := m.refusalsOnly.Gather() // gathering a CounterVec cannot fail
	for _, family := range families {
		for _, one := range family.GetMetric() {
			for _, label := range one.GetLabel() {
				if n := int64(one.GetCounter().GetValue()); n > 0 && label.GetName() == "limit" {
					counts[label.GetValue()] += n
				}
			}
		}
	}
	return counts
}
