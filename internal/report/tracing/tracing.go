// Package tracing sends traces to a collector, by OTLP over HTTP (https://opentelemetry.io/docs/specs/otlp/): a span
// for each session, for each command and for each request to S3. Names of attributes are those of
// https://opentelemetry.io/docs/specs/semconv/, and begin with babelftp where these have none.
//
// A session may last for days and have thousands of commands. Backends show a trace when its root has ended, and bound
// its size. So a command is the root of a trace of its own, with the requests to S3 below it, and links to the span of
// its session. Both have the ID of the session, as the log does. A session is traced as a whole or not at all.
//
// The spans that wait for the collector are limited in bytes, with shares for tenants and users. Clients that have
// never logged in have a few spans a second, all of them together. So a flood costs no other user a span.
//
// No secret reaches a span: of a command line it has what [report.Command] shows.
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
	// flushTimeout bounds the wait for the last spans when the server stops.
	flushTimeout = 2 * time.Second
	// maxText is how much of a text a span has, in bytes, so that clients cannot fill the memory.
	maxText = 1024
	// maxWaiting is the default of OTEL_BSP_MAX_QUEUE_SIZE, how many spans of minSpan bytes may wait for the collector.
	// A larger span counts for several.
	maxWaiting, minSpan = 4096, 1 << 10
	// strangersPerSecond is how many spans there are a second of sessions that have never been logged in, and
	// strangersAtOnce how many of them at once.
	strangersPerSecond, strangersAtOnce = 10, 100
	// protocol is how spans are sent, as OTEL_EXPORTER_OTLP_PROTOCOL has it.
	protocol = "http/protobuf"
)

// library names this package in spans (the instrumentation scope).
const library = "github.com/babelftp/babelftp"

// A Tracer makes spans and sends them. Any goroutine may use it. A nil one does nothing.
type Tracer struct {
	// sessions samples as the environment says, and commands takes all: those of a session that is traced.
	sessions, commands *sdk.TracerProvider
	strangers          *rate.Limiter // of spans
	exporter           *exporter
	waiting            *waiting
	flush              time.Duration // flushTimeout, or more in tests
}

// New makes a tracer, or nil where the environment names no collector. The variables are those of OpenTelemetry
// (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ and
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/). version is that of babelftp. It sends nothing before
// a session has a span.
func New(ctx context.Context, version string, log *slog.Logger) (*Tracer, error) {
	if !wanted() {
		return nil, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if asked := os.Getenv(name); asked != "" && asked != protocol {
			return nil, fmt.Errorf(
				"traces: %s=%s: only %s is supported, which collectors take at port 4318", name, asked, protocol)
		}
	}
	host, _ := os.Hostname() // in Kubernetes the name of the pod
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
		return nil, fmt.Errorf("traces: OTEL_BSP_MAX_QUEUE_SIZE=%s: want how many spans may wait, 1 or more",
			os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE"))
	}
	w := &waiting{bytes: report.NewShares(most * minSpan)}
	t := &Tracer{
		strangers: rate.NewLimiter(strangersPerSecond, strangersAtOnce),
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

// wanted tells whether the environment names a collector, and does not switch traces off.
func wanted() bool {
	off := strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none"
	return !off && os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")+os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// An exporter counts the spans that the collector takes, and logs failures once a minute.
type exporter struct {
	sdk.SpanExporter
	waiting  *waiting
	log      *slog.Logger
	failures limits.Sampler[string] // that the log shows
	sent     atomic.Int64           // spans
}

// ExportSpans implements [sdk.SpanExporter]. Its error is in the log.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.waiting.release(spans)
	if err == nil {
		e.sent.Add(int64(len(spans)))
		return nil
	}
	if more, first := e.failures.Pass(""); first {
		e.log.Warn(
			"traces: the collector does not take spans, and they are lost; look at OTEL_EXPORTER_OTLP_ENDPOINT; the "+
				"log shows one failure a minute",
			"err", err, "spans", len(spans), "more", more)
	}
	return nil
}

// Spans returns how many spans have ended, and how many the collector has. Some may still wait for it; the others are
// lost.
func (t *Tracer) Spans() (ended, sent int64) { return t.waiting.ended.Load(), t.exporter.sent.Load() }

// Shutdown sends the spans that wait. It takes a few seconds at most.
func (t *Tracer) Shutdown(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.flush)
	defer cancel()
	if err := errors.Join(t.commands.Shutdown(ctx), t.sessions.Shutdown(ctx)); err != nil {
		t.exporter.log.Warn("traces: the last spans could not be sent in time", "err", err)
	}
}

// A Session observes a session, and makes its spans. It is for the goroutine of the session.
type Session struct {
	report.Silent
	tracer *Tracer
	client *report.Client
	known  bool         // whether a user has logged in
	span   trace.Span   // nil where the session is not traced
	links  []trace.Link // to the span
}

var _ report.Observer = (*Session)(nil)

// Session returns the observer of a session, nil where there are no traces.
func (t *Tracer) Session(client *report.Client) *Session {
	if t == nil {
		return nil
	}
	return &Session{tracer: t, client: client}
}

// SessionOpened begins the span of the session, if this session is traced.
func (s *Session) SessionOpened(ctx context.Context) {
	_, span := s.tracer.sessions.Tracer(library).Start(ctx, "session", trace.WithNewRoot())
	if span.SpanContext().IsSampled() {
		s.span, s.links = span, []trace.Link{{SpanContext: span.SpanContext()}}
	}
}

// SessionClosed ends the span of the session.
func (s *Session) SessionClosed() {
	if !s.admitted() {
		return // a span that does not end is not sent
	}
	s.describe(s.span)
	s.span.End()
}

// Identified keeps what a span that ends has of the client.
func (s *Session) Identified(client *report.Client) {
	s.client = client
	s.known = s.known || client.User != ""
}

// admitted tells whether the session is traced, and has room for another span.
func (s *Session) admitted() bool { return s.span != nil && (s.known || s.tracer.strangers.Allow()) }

// CommandBegan begins the span of a command.
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

// Codes of replies between which the fault is not the client's (RFC 959 4.2.1): a command that fails so may succeed
// later.
const firstTransient, firstPermanent = 400, 500

// CommandEnded ends the span of a command. The first byte of its transfer has come so long after its begin.
func (s *Session) CommandEnded(ctx context.Context, o *report.Outcome) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return // no command, or one that is not traced
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

// describe says whose span it is.
func (s *Session) describe(span trace.Span) {
	about := []attribute.KeyValue{
		attribute.String("session.id", s.client.ID), attribute.String("client.address", s.client.Address.String()),
		attribute.String("network.protocol.name", "ftp"),
	}
	span.SetAttributes(append(about, s.owner()...)...)
}

// owner returns the tenant and the user.
func (s *Session) owner() (about []attribute.KeyValue) {
	if s.client.Tenant != "" {
		about = append(about, attribute.String(tenantKey, text(s.client.Tenant)))
	}
	if s.client.User != "" {
		about = append(about, attribute.String(userKey, text(s.client.User)))
	}
	return about
}

// text is what a span has of a text: not too much, and only UTF-8, because the collector refuses all spans of a
// request otherwise.
func text(s string) string {
	if len(s) > maxText {
		s = strings.Clone(s[:maxText])
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
