// Package tracing sends traces to a collector, by OTLP over HTTP (https://opentelemetry.io/docs/specs/otlp/): a span for each session, for each
// command and for each request to S3. Names of attributes are those of https://opentelemetry.io/docs/specs/semconv/, and begin with babelftp where
// these have none.
//
// A session may last for days and have thousands of commands. Backends show a trace when its root has ended, and bound its size. So a command is the
// root of a trace of its own, with the requests to S3 below it, and links to the span of its session. Both have the ID of the session, as
// the log does. A session is traced as a whole or not at all.
//
// No secret reaches a span: of a command line it has what package sessionlog shows.
package tracing

import (
	"context"
	"crypto/x509"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/babelftp/babelftp/internal/sessionlog"
)

const (
	// maxQueue is how many spans wait for the collector, some megabytes. Later ones are lost.
	maxQueue = 2048
	// maxBatch is how many spans a request to the collector has.
	maxBatch = 512
	// batchEvery is how long a span waits for others.
	batchEvery = 2 * time.Second
	// exportTimeout bounds how long a batch is tried. Meanwhile the queue fills.
	exportTimeout = 30 * time.Second
	// flushTimeout bounds the wait for the last spans when the server stops.
	flushTimeout = 2 * time.Second
	// maxText is how much of a text a span has, in bytes, so that clients cannot fill the memory.
	maxText = 1024
)

// library names this package in spans (the instrumentation scope).
const library = "github.com/babelftp/babelftp"

// Options is what a [Tracer] needs.
type Options struct {
	// Endpoint is the base URL of the collector.
	Endpoint string
	// Header is that of each request to the collector, nil for none.
	Header http.Header
	// Authorities are those that the server trusts for the collector, nil for those of the system.
	Authorities *x509.CertPool
	// Sample is the share of the sessions that are traced, 0 to 1.
	Sample float64
	// Version is that of babelftp.
	Version string
	Log     *slog.Logger
}

// A Tracer makes spans and sends them. Any goroutine may use it. A nil one does nothing.
type Tracer struct {
	sample    float64
	provider  *sdk.TracerProvider
	tracer    trace.Tracer
	collector *collector
	flush     time.Duration // flushTimeout, or more in tests
	ended     atomic.Int64
}

// New makes a tracer. It sends nothing before a session has a span.
func New(o Options) *Tracer {
	t := &Tracer{sample: o.Sample, collector: newCollector(o), flush: flushTimeout}
	host, _ := os.Hostname() // in Kubernetes the name of the pod
	exporter := otlptrace.NewUnstarted(t.collector)
	t.provider = sdk.NewTracerProvider(
		sdk.WithSampler(sdk.AlwaysSample()), // Session decides
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "babelftp"), attribute.String("service.version", o.Version), attribute.String("service.instance.id", host),
		)),
		sdk.WithRawSpanLimits(sdk.SpanLimits{
			AttributeValueLengthLimit: -1, AttributeCountLimit: -1, // bounded here, where values are made
			EventCountLimit: sdk.DefaultEventCountLimit, LinkCountLimit: sdk.DefaultLinkCountLimit,
			AttributePerEventCountLimit: sdk.DefaultAttributePerEventCountLimit, AttributePerLinkCountLimit: sdk.DefaultAttributePerLinkCountLimit,
		}),
		sdk.WithSpanProcessor(counting{sdk.NewBatchSpanProcessor(exporter,
			sdk.WithMaxQueueSize(maxQueue), sdk.WithMaxExportBatchSize(maxBatch), sdk.WithBatchTimeout(batchEvery), sdk.WithExportTimeout(exportTimeout),
		), &t.ended}),
	)
	t.tracer = t.provider.Tracer(library)
	return t
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

// Spans tells how many spans have ended, and how many the collector has. Some may still wait for it; the others are lost.
func (t *Tracer) Spans() (ended, sent int64) { return t.ended.Load(), t.collector.sent.Load() }

// Shutdown sends the spans that wait. It takes a few seconds at most.
func (t *Tracer) Shutdown(ctx context.Context) {
	if t == nil {
		return
	}
	close(t.collector.stopping)
	defer t.collector.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.flush)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.collector.log.Warn("traces: the last spans could not be sent in time", "err", err)
	}
}

// A Session makes the spans of a session. It is for the goroutine of the session. A nil one does nothing.
type Session struct {
	tracer  *Tracer
	about   *sessionlog.Session
	span    trace.Span
	links   []trace.Link // to the span
	command trace.Span   // nil between commands
	began   time.Time    // of the command
	code    int          // of its last reply
}

// Session begins the span of a session, if this session is traced. What about tells when a span ends is in it.
func (t *Tracer) Session(ctx context.Context, about *sessionlog.Session) *Session {
	if t == nil || rand.Float64() >= t.sample {
		return nil
	}
	_, span := t.tracer.Start(ctx, "session", trace.WithNewRoot())
	return &Session{tracer: t, about: about, span: span, links: []trace.Link{{SpanContext: span.SpanContext()}}}
}

// End ends the session.
func (s *Session) End() {
	if s == nil {
		return
	}
	s.describe(s.span)
	s.span.End()
}

// Command begins a command, and returns the context of all that is done for it. The name is that of a command that the server knows, or stands for
// all others.
func (s *Session) Command(ctx context.Context, name string, line sessionlog.Command) context.Context {
	if s == nil {
		return ctx
	}
	s.began, s.code = time.Now(), 0
	ctx, s.command = s.tracer.tracer.Start(ctx, name, trace.WithNewRoot(), trace.WithLinks(s.links...), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithTimestamp(s.began), trace.WithAttributes(attribute.String("babelftp.command.line", text(line.String()))))
	return ctx
}

// Replied tells the code of a reply to the command.
func (s *Session) Replied(code int) {
	if s != nil {
		s.code = code
	}
}

// Transferred tells what the data connection of the command has carried, and when the first byte came after the begin of the command.
func (s *Session) Transferred(bytes int64, firstByte time.Duration) {
	if s == nil || s.command == nil {
		return
	}
	s.command.SetAttributes(attribute.Int64("babelftp.transfer.bytes", bytes))
	if firstByte > 0 {
		s.command.AddEvent("first byte", trace.WithTimestamp(s.began.Add(firstByte)))
	}
}

// Codes of replies between which the fault is not the client's (RFC 959 4.2.1): a command that fails so may succeed later.
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

// text is what a span has of a text: not too much, and only UTF-8, because the collector refuses all spans of a request otherwise.
func text(s string) string {
	if len(s) > maxText {
		s = strings.Clone(s[:maxText])
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
