// Package tracing sends traces to a collector, by OTLP over HTTP (https://opentelemetry.io/docs/specs/otlp/): a span
// for each session, for each command and for each request to S3. Names of attributes are those of
// https://opentelemetry.io/docs/specs/semconv/, and begin with babelftp where these have none.
//
// A session may last for days and have thousands of commands. Backends show a trace when its root has ended, and bound
// its size. So a command is the root of a trace of its own, with the requests to S3 below it, and links to the span of
// its session. Both have the ID of the session, as the log does. A session is traced as a whole or not at all. Clients
// that have never logged in have a few spans a second, all of them together. So a flood of them costs users no span.
//
// No secret reaches a span: of a command line it has what package sessionlog shows.
package tracing

import (
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
	"github.com/babelftp/babelftp/internal/report/sessionlog"
)

const (
	// flushTimeout bounds the wait for the last spans when the server stops.
	flushTimeout = 2 * time.Second
	// maxText is how much of a text a span has, in bytes, so that clients cannot fill the memory.
	maxText = 1024
	// strangersPerSecond is how many spans there are a second of sessions that have never been logged in, and
	// strangersAtOnce how many of them at once. The exporter keeps 2048 spans until the next request, and loses what is
	// above.
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
	ended              atomic.Int64
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
	t := &Tracer{
		strangers: rate.NewLimiter(strangersPerSecond, strangersAtOnce),
		exporter:  &exporter{SpanExporter: client, log: log},
		flush:     flushTimeout,
	}
	processor := sdk.WithSpanProcessor(counting{sdk.NewBatchSpanProcessor(t.exporter), &t.ended})
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
	log      *slog.Logger
	failures limits.Sampler[string] // that the log shows
	sent     atomic.Int64           // spans
}

// ExportSpans implements [sdk.SpanExporter]. Its error is in the log.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
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

// counting counts the spans that end.
type counting struct {
	sdk.SpanProcessor
	ended *atomic.Int64
}

// OnEnd implements [sdk.SpanProcessor].
func (c counting) OnEnd(s sdk.ReadOnlySpan) {
	c.ended.Add(1)
	c.SpanProcessor.OnEnd(s)
}

// Spans tells how many spans have ended, and how many the collector has. Some may still wait for it; the others are
// lost.
func (t *Tracer) Spans() (ended, sent int64) { return t.ended.Load(), t.exporter.sent.Load() }

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

// A Session makes the spans of a session. It is for the goroutine of the session. A nil one does nothing.
type Session struct {
	tracer  trace.Tracer // of commands
	about   *sessionlog.Session
	limit   *rate.Limiter // until a user has logged in
	known   bool          // whether one has
	span    trace.Span
	links   []trace.Link // to the span
	command trace.Span   // nil between commands
	began   time.Time    // of the command
	code    int          // of its last reply
}

// Session begins the span of a session, if this session is traced. What about tells when a span ends is in it.
func (t *Tracer) Session(ctx context.Context, about *sessionlog.Session) *Session {
	if t == nil {
		return nil
	}
	_, span := t.sessions.Tracer(library).Start(ctx, "session", trace.WithNewRoot())
	if !span.SpanContext().IsSampled() {
		return nil
	}
	return &Session{
		tracer: t.commands.Tracer(library), about: about, limit: t.strangers, span: span,
		links: []trace.Link{{SpanContext: span.SpanContext()}},
	}
}

// admitted tells whether there is room for another span of the session.
func (s *Session) admitted() bool {
	s.known = s.known || s.about.User != ""
	return s.known || s.limit.Allow()
}

// End ends the session.
func (s *Session) End() {
	if s == nil || !s.admitted() {
		return // a span that does not end is not sent
	}
	s.describe(s.span)
	s.span.End()
}

// Command begins a command, and returns the context of all that is done for it. The name is that of a command that
// the server knows, or stands for all others.
func (s *Session) Command(ctx context.Context, name string, line sessionlog.Command) context.Context {
	if s == nil || !s.admitted() {
		return ctx
	}
	s.began, s.code = time.Now(), 0
	ctx, s.command = s.tracer.Start(
		ctx, name, trace.WithNewRoot(), trace.WithLinks(s.links...), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithTimestamp(s.began), trace.WithAttributes(
			attribute.String("babelftp.command.line", text(line.String()))))
	return ctx
}

// Replied tells the code of a reply to the command.
func (s *Session) Replied(code int) {
	if s != nil {
		s.code = code
	}
}

// Transferred tells what the data connection of the command has carried, and when the first byte came after the begin
// of the command.
func (s *Session) Transferred(bytes int64, firstByte time.Duration) {
	if s == nil || s.command == nil {
		return
	}
	s.command.SetAttributes(attribute.Int64("babelftp.transfer.bytes", bytes))
	if firstByte > 0 {
		s.command.AddEvent("first byte", trace.WithTimestamp(s.began.Add(firstByte)))
	}
}

// Codes of replies between which the fault is not the client's (RFC 959 4.2.1): a command that fails so may succeed
// later.
const firstTransient, firstPermanent = 400, 500

// EndCommand ends the command.
func (s *Session) EndCommand() {
	if s == nil || s.command == nil {
		return
	}
	s.describe(s.command)
	if s.code != 0 {
		s.command.SetAttributes(attribute.Int("babelftp.reply.code", s.code))
	}
	if s.code >= firstTransient {
		s.command.SetAttributes(attribute.String("error.type", strconv.Itoa(s.code)))
	}
	if s.code >= firstTransient && s.code < firstPermanent {
		s.command.SetStatus(codes.Error, "")
	}
	s.command.End()
	s.command = nil
}

// describe says whose span it is.
func (s *Session) describe(span trace.Span) {
	about := []attribute.KeyValue{
		attribute.String("session.id", s.about.ID), attribute.String("client.address", s.about.Address.String()),
		attribute.String("network.protocol.name", "ftp"),
	}
	if s.about.Tenant != "" {
		about = append(about, attribute.String("babelftp.tenant", text(s.about.Tenant)))
	}
	if s.about.User != "" {
		about = append(about, attribute.String("user.name", text(s.about.User)))
	}
	span.SetAttributes(about...)
}

// text is what a span has of a text: not too much, and only UTF-8, because the collector refuses all spans of a
// request otherwise.
func text(s string) string {
	if len(s) > maxText {
		s = strings.Clone(s[:maxText])
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
