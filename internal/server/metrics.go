package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/babelftp/babelftp/internal/account"
	"github.com/babelftp/babelftp/internal/control"
	"github.com/babelftp/babelftp/internal/dataconn"
	"github.com/babelftp/babelftp/internal/vfs"
)

// metrics counts what happens. It watches the control connections and, as a middleware of the SDK, the requests to S3.
type metrics struct {
	registry *prometheus.Registry

	sessions      prometheus.Gauge
	sessionsTotal prometheus.Counter
	logins        *prometheus.CounterVec
	refusals      *prometheus.CounterVec
	bans          *prometheus.CounterVec
	replies       *prometheus.CounterVec
	transfers     *prometheus.CounterVec
	bytes         *prometheus.CounterVec
	requests      *prometheus.CounterVec
	auditLost     *prometheus.CounterVec
	storeUp       prometheus.Gauge
	storeErrors   prometheus.Counter
	acme          *prometheus.CounterVec
	events        *prometheus.CounterVec
	durations     *prometheus.HistogramVec
}

var _ control.Observer = (*metrics)(nil)

func newMetrics(version string) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "babelftp", Name: name, Help: help}, labels)
	}
	m := &metrics{
		registry:      prometheus.NewRegistry(),
		sessions:      prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "babelftp", Name: "sessions", Help: "Control connections that are open."}),
		sessionsTotal: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "babelftp", Name: "sessions_total", Help: "Control connections so far."}),
		logins:        counter("logins_total", "Logins, by tenant (empty where it is not known) and result (accepted, refused).", "tenant", "result"),
		refusals:      counter("refusals_total", "What a limit has refused or ended, by limit (its key, or descriptors) and tenant (empty where the limit is the server's).", "limit", "tenant"),
		bans:          counter("bans_total", "Bans so far, by kind (address, network, user).", "kind"),
		replies:       counter("commands_total", "Replies to commands, by command (empty for what is none) and class of the reply (2xx).", "command", "class"),
		transfers:     counter("transfers_total", "Transfers on data connections, by tenant, direction (upload, download) and result (complete, failed).", "tenant", "direction", "result"),
		bytes:         counter("transfer_bytes_total", "Bytes on data connections, by tenant and direction.", "tenant", "direction"),
		requests:      counter("s3_requests_total", "Requests to S3, and to STS for roles, retries included, by operation and HTTP status (error where no answer came).", "operation", "status"),
		events:        counter("webhook_events_total", "Events that a webhook got or not, by tenant and result (delivered, postponed).", "tenant", "result"),
		auditLost:     counter("audit_lines_lost_total", "Lines of the audit log that a destination (file, stdout) did not get.", "destination"),
		acme:          counter("acme_certificates_total", "Certificates that ACME has obtained or not, by result (obtained, failed).", "result"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "babelftp", Name: "s3_request_duration_seconds", Help: "Time until S3 began to answer a request, by operation.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2, 15), // to 33 seconds
		}, []string{"operation"}),
	}
	m.storeUp = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "babelftp", Name: "limits_store_up", Help: "Whether limits.store answers, and this replica shares bans."})
	m.storeErrors = prometheus.NewCounter(prometheus.CounterOpts{Namespace: "babelftp", Name: "limits_store_errors_total", Help: "Requests to limits.store that failed."})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "babelftp", Name: "build_info", Help: "Always 1, with the version.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.sessions, m.sessionsTotal, m.logins, m.refusals, m.bans, m.replies, m.transfers, m.bytes, m.requests, m.auditLost, m.acme, m.events, m.durations, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// passivePorts is the gauge of ports that are in use.
func passivePorts(ports *dataconn.Ports) prometheus.Collector {
	return prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Namespace: "babelftp", Name: "passive_ports", Help: "Passive ports on which sessions wait for their clients."},
		func() float64 { return float64(ports.InUse()) },
	)
}

// handler serves the metrics to Prometheus.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// SessionOpened implements [control.Observer].
func (m *metrics) SessionOpened() {
	m.sessions.Inc()
	m.sessionsTotal.Inc()
}

// SessionClosed implements [control.Observer].
func (m *metrics) SessionClosed() { m.sessions.Dec() }

// LoggedIn implements [control.Observer].
func (m *metrics) LoggedIn(login *account.Login, err error) {
	result, tenant := "refused", ""
	if err == nil {
		result, tenant = "accepted", login.Tenant.Name
	}
	m.logins.WithLabelValues(tenant, result).Inc()
}

// LoggedOut implements [control.Observer].
func (m *metrics) LoggedOut() {}

// Storage implements [control.Observer].
func (m *metrics) Storage(s vfs.ObjectStorage) vfs.ObjectStorage { return s }

// Refused implements [control.Observer].
func (m *metrics) Refused(tenant, limit string) { m.refusals.WithLabelValues(limit, tenant).Inc() }

// storeAnswered shows whether limits.store answers. Without a store there are no such metrics.
func (m *metrics) storeAnswered(err error) {
	if err == nil {
		m.storeUp.Set(1)
		return
	}
	m.storeUp.Set(0)
	m.storeErrors.Inc()
}

// issued counts what an ACME authority has done.
func (m *metrics) issued(err error) {
	result := "obtained"
	if err != nil {
		result = "failed"
	}
	m.acme.WithLabelValues(result).Inc()
}

func (m *metrics) banned(kind string) { m.bans.WithLabelValues(kind).Inc() }

// Replied implements [control.Observer].
func (m *metrics) Replied(command, _ string, code int) {
	m.replies.WithLabelValues(command, strconv.Itoa(code/100)+"xx").Inc()
}

// Transferred implements [control.Observer].
func (m *metrics) Transferred(tenant string, upload bool, bytes int64, complete bool) {
	direction, result := "download", "complete"
	if upload {
		direction = "upload"
	}
	if !complete {
		result = "failed"
	}
	m.transfers.WithLabelValues(tenant, direction, result).Inc()
	m.bytes.WithLabelValues(tenant, direction).Add(float64(bytes))
}

// observe adds the counting of requests to a client of the SDK. It comes last in the deserialize step, so that it sees each attempt.
func (m *metrics) observe(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("babelftp-metrics", m.request), middleware.After)
}

func (m *metrics) request(
	ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
) (middleware.DeserializeOutput, middleware.Metadata, error) {
	start := time.Now()
	out, metadata, err := next.HandleDeserialize(ctx, in)
	operation, status := awsmiddleware.GetOperationName(ctx), "error"
	if response, ok := out.RawResponse.(*smithyhttp.Response); ok && response != nil && response.Response != nil {
		status = strconv.Itoa(response.StatusCode)
	}
	if err != nil && errors.Is(err, context.Canceled) {
		status = "canceled" // by a client that went away
	}
	m.durations.WithLabelValues(operation).Observe(time.Since(start).Seconds())
	m.requests.WithLabelValues(operation, status).Inc()
	return out, metadata, err
}
