// Package tracing sends traces to a collector with OTLP over HTTP (https://opentelemetry.io/docs/specs/otlp/): a span
// for each session, each command and each request to S3. Attributes have the names of
// https://opentelemetry.io/docs/specs/semconv/ if there are any, and otherwise begin with babelftp.
//
// A session may last for days and have thousands of commands, but backends only show a trace when its root has ended,
// and limit its size. Therefore each command is the root of its own trace, with its requests to S3 below, and links to
// the span of its session. Both have the session ID, like the log. A session is traced completely or not at all.
//
// A [Tracer] creates a [Session] for each session, which observes it. The spans that wait for the collector are
// limited in bytes, with shares for tenants and users. All clients that have never logged in share a few spans per
// second. Therefore a flood does not displace the spans of other users.
//
// Spans contain no secrets: the command line is masked by [report.Command].
package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/report"
)

const (
	// flushTimeout limits the wait for the last spans when the server shuts down.
	flushTimeout = 2 * time.Second
	// maxText limits the length of a text in a span, in bytes, so that clients cannot fill the memory.
	maxText = 1024
	// maxWaiting is the default of OTEL_BSP_MAX_QUEUE_SIZE, the number of spans with minSpan bytes that may wait for
	// the collector. A larger span counts as several.
	maxWaiting, minSpan = 4096, 1 << 10
	// strangersPerSecond is the rate of spans for sessions without a login, and strangersBurst the maximum burst.
	strangersPerSecond, strangersBurst = 10, 100
	// protocol is the only supported value of OTEL_EXPORTER_OTLP_PROTOCOL.
	protocol = "http/protobuf"
)

// library is the instrumentation scope of spans.
const library = "github.com/babelftp/babelftp"

// A Tracer creates and sends spans. It is safe for concurrent use. A nil Tracer does nothing.
type Tracer struct {
	// sessions samples as configured in the environment. commands takes every command of a sampled session.
	sessions, commands *sdk.TracerProvider
	strangers          *rate.Limiter // limits the spans of sessions without a login
	exporter           *exporter
	waiting            *waiting
	flush              time.Duration // flushTimeout, or longer in tests
}

// New returns a tracer, or nil if the environment names no collector. The variables are defined by OpenTelemetry
// (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ and
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/). version is the version of babelftp. New sends nothing.
func New(ctx context.Context, version string, log *slog.Logger) (*Tracer, error) {
	if !wanted() {
		return nil, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if asked := os.Getenv(name); asked != "" && asked != protocol {
			return nil, fmt.Errorf(
				"traces: unsupported %s=%s: want %s, usually on port 4318", name, asked, protocol)
		}
	}
	host, _ := os.Hostname() // in Kubernetes, the name of the pod
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "babelftp"), attribute.String("service.version", version),
		attribute.String("service.instance.id", host),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	client, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	most, err := strconv.Atoi(cmp.Or(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE"), strconv.Itoa(maxWaiting)))
	if err != nil || most < 1 {
		return nil, fmt.Errorf("traces: invalid OTEL_BSP_MAX_QUEUE_SIZE=%s: want 1 or more",
			os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE"))
	}
	w := &waiting{bytes: report.NewShares(most * minSpan)}
	t := &Tracer{
		strangers: rate.NewLimiter(strangersPerSecond, strangersBurst),
		waiting:   w,
		exporter:  &exporter{SpanExporter: client, waiting: w, log: log},
		flush:     flushTimeout,
	}
	w.SpanProcessor = sdk.NewBatchSpanProcessor(t.exporter, sdk.WithMaxQueueSize(most))
	processor := sdk.WithSpanProcessor(w)
	t.sessions = sdk.NewTracerProvider(sdk.WithResource(about), processor)
	t.commands = sdk.NewTracerProvider(sdk.WithResource(about), processor, sdk.WithSampler(sdk.AlwaysSample()))
	return t, nil
}

// wanted reports whether the environment names a collector and traces are not disabled.
func wanted() bool {
	off := strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none"
	return !off && os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")+os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// An exporter counts the spans that the collector accepted, and logs failures once per minute.
type exporter struct {
	sdk.SpanExporter
	waiting  *waiting
	log      *slog.Logger
	failures limits.Sampler[string] // limits the log
	sent     atomic.Int64           // number of spans
}

// ExportSpans implements [sdk.SpanExporter]. It logs errors instead of returning them.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.waiting.release(spans)
	if err == nil {
		e.sent.Add(int64(len(spans)))
		return nil
	}
	if more, first := e.failures.Pass(""); first {
		e.log.Warn(
			"traces: sending spans failed; check OTEL_EXPORTER_OTLP_ENDPOINT",
			"err", err, "spans", len(spans), "more", more)
	}
	return nil
}

// Spans returns the number of ended spans, and of spans that the collector accepted. The difference is waiting or
// lost.
func (t *Tracer) Spans() (ended, sent int64) { return t.waiting.ended.Load(), t.exporter.sent.Load() }

// Shutdown sends the waiting spans. It takes at most a few seconds.
func (t *Tracer) Shutdown(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.flush)
	defer cancel()
	if err := errors.Join(t.commands.Shutdown(ctx), t.sessions.Shutdown(ctx)); err != nil {
		t.exporter.log.Warn("traces: sending the last spans timed out", "err", err)
	}
}

// A Session observes a session and creates its spans. Only the goroutine of the session may use it.
type Session struct {
	report.Silent
	tracer *Tracer
	client *report.Client
	known  bool         // a user has logged in
	span   trace.Span   // nil if the session is not traced
	links  []trace.Link // to span
}

var _ report.Observer = (*Session)(nil)

// Session returns the observer of a session, or nil if traces are disabled.
func (t *Tracer) Session(client *report.Client) *Session {
	if t == nil {
		return nil
	}
	return &Session{tracer: t, client: client}
}

// SessionOpened starts the span of the session, if the session is sampled.
func (s *Session) SessionOpened(ctx context.Context) {
	_, span := s.tracer.sessions.Tracer(library).Start(ctx, "session", trace.WithNewRoot())
	if span.SpanContext().IsSampled() {
		s.span, s.links = span, []trace.Link{{SpanContext: span.SpanContext()}}
	}
}

// SessionClosed ends the span of the session.
func (s *Session) SessionClosed() {
	if !s.admitted() {
		return // a span is only sent when it ends
	}
	s.describe(s.span)
	s.span.End()
}

// Identified stores the attributes of the client for spans that end later.
func (s *Session) Identified(client *report.Client) {
	s.client = client
	s.known = s.known || client.User != ""
}

// admitted reports whether the session is traced and may have another span.
func (s *Session) admitted() bool { return s.span != nil && (s.known || s.tracer.strangers.Allow()) }

// CommandBegan starts the span of a command.
func (s *Session) CommandBegan(ctx context.Context, c report.Command) context.Context {
	if !s.admitted() {
		return ctx
	}
	ctx, _ = s.tracer.commands.Tracer(library).Start(
		context.WithValue(ctx, ownerKey{}, s.owner()), c.Name,
		trace.WithNewRoot(), trace.WithLinks(s.links...), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithTimestamp(c.Began), trace.WithAttributes(
			attribute.String("babelftp.command.line", text(c.String()))))
	return ctx
}

// Reply codes of temporary failures (RFC 959 section 4.2.1). They are not the client's fault, and the same command may
// succeed later.
const firstTransient, firstPermanent = 400, 500

// CommandEnded ends the span of a command. An event marks the first byte of its transfer.
func (s *Session) CommandEnded(ctx context.Context, o *report.Outcome) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return // there was no command, or it is not traced
	}
	s.describe(span)
	if t := o.Transfer; t != nil {
		span.SetAttributes(attribute.Int64("babelftp.transfer.bytes", t.Bytes()))
		if first := t.FirstByte(); first > 0 {
			span.AddEvent("first byte", trace.WithTimestamp(o.Began.Add(first)))
		}
	}
	span.SetAttributes(attribute.Int("babelftp.reply.code", o.Code))
	if o.Failed() {
		span.SetAttributes(attribute.String("error.type", strconv.Itoa(o.Code)))
	}
	if o.Code >= firstTransient && o.Code < firstPermanent {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// describe adds the attributes of the session to a span.
func (s *Session) describe(span trace.Span) {
	about := []attribute.KeyValue{
		attribute.String("session.id", s.client.ID), attribute.String("client.address", s.client.Address.String()),
		attribute.String("network.protocol.name", "ftp"),
	}
	span.SetAttributes(append(about, s.owner()...)...)
}

// owner returns the attributes for the tenant and the user.
func (s *Session) owner() (about []attribute.KeyValue) {
	if s.client.Tenant != "" {
		about = append(about, attribute.String(tenantKey, text(s.client.Tenant)))
	}
	if s.client.User != "" {
		about = append(about, attribute.String(userKey, text(s.client.User)))
	}
	return about
}

// text prepares a text for a span. It limits the length and replaces invalid UTF-8, because otherwise the collector
// would reject all spans of a request.
func text(s string) string {
	if len(s) > maxText {
		s = strings.Clone(s[:maxText])
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
