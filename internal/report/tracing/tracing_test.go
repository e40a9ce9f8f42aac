package tracing

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// newTracer returns a tracer that sends to a collector, with environment variables NAME=value. Its Shutdown waits
// longer, because the machine may be busy.
func newTracer(t *testing.T, url string, environ ...string) (*Tracer, *servicetest.Log) {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	log := &servicetest.Log{}
	tracer, err := New(t.Context(), "v1", log.Logger())
	must.OK(t, err)
	if tracer != nil {
		tracer.flush = time.Minute
	}
	return tracer, log
}

var about = &report.Client{ID: "0123456789abcdef", Remote: "192.0.2.7:4711",
	Address: netip.MustParseAddr("192.0.2.7"), Tenant: "acme", User: "alice"}

// session starts a session of a client.
func session(t *testing.T, tracer *Tracer, client *report.Client) *Session {
	s := tracer.Session(client)
	s.SessionOpened(t.Context())
	s.Identified(client)
	return s
}

// command runs a command in a session.
func command(ctx context.Context, s *Session, verb, argument string, code int) context.Context {
	c := report.Command{Name: verb, Verb: verb, Argument: argument, Known: true, Began: time.Now()}
	ctx = s.CommandBegan(ctx, c)
	s.CommandEnded(ctx, &report.Outcome{Command: c, Code: code})
	return ctx
}

// Text from clients cannot fill the memory or make a request that the collector cannot parse.
func TestTextsAreBounded(t *testing.T) {
	collector := servicetest.StartCollector(t)
	tracer, _ := newTracer(t, collector.URL+"/")
	mine := *about
	mine.User = "alice\xff"
	s := session(t, tracer, &mine)
	command(t.Context(), s, "STOR", strings.Repeat("é", 4000)+"\xff", 226)
	command(t.Context(), s, "STOR", "a\xffb", 226)
	s.SessionClosed()
	tracer.Shutdown(t.Context())
	spans := collector.Spans()
	if len(spans) != 3 {
		t.Fatalf("got %+v", spans)
	}
	for _, span := range spans {
		for key, value := range span.Attributes {
			if !utf8.ValidString(value) || len(value) > maxText+2 {
				t.Errorf("%s has %d bytes: %.80q", key, len(value), value)
			}
		}
	}
	if got := spans[1].Attributes["babelftp.command.line"]; got != "STOR a\uFFFDb" {
		t.Errorf("got %q", got)
	}
}

// The span of a command has an error status if its reply says that the same command may succeed later.
func TestStatusOfCommands(t *testing.T) {
	collector := servicetest.StartCollector(t)
	tracer, _ := newTracer(t, collector.URL)
	s := session(t, tracer, about)
	failed := map[string]bool{"226": false, "350": false, "421": true, "451": true, "530": false, "550": false}
	for _, code := range []int{226, 350, 421, 451, 530, 550} {
		command(t.Context(), s, "NOOP", "", code)
	}
	ctx := command(t.Context(), s, "RETR", "f", 226)
	s.CommandEnded(t.Context(), &report.Outcome{Code: 421}) // no command
	// Sent after the command has ended.
	AddRequest(
		ctx, &sessionlog.Request{Service: "S3", Operation: "AbortMultipartUpload", Status: "204", Begin: time.Now()})
	tracer.Shutdown(t.Context())
	spans := collector.Spans()
	if len(spans) != len(failed)+2 {
		t.Fatalf("got %+v", spans)
	}
	for _, span := range spans[:len(failed)] {
		code := span.Attributes["babelftp.reply.code"]
		want, known := failed[code]
		if !known || span.Failed != want || (span.Attributes["error.type"] != "") != (code >= "400") {
			t.Errorf("got %+v", span)
		}
	}
	if of, late := spans[len(failed)], spans[len(failed)+1]; late.Parent != of.ID {
		t.Errorf("got %+v, then %+v", of, late)
	}
}

// The sampler in the environment decides per session. A session is traced with all of its commands, or not at all.
func TestSampler(t *testing.T) {
	for _, test := range []struct {
		sampler  string
		low, top int // sampled sessions of a thousand
	}{
		{"always_off", 0, 0}, {"always_on", 1000, 1000}, {"traceidratio", 300, 700},
		{"parentbased_traceidratio", 300, 700},
	} {
		t.Run(test.sampler, func(t *testing.T) {
			collector := servicetest.StartCollector(t)
			tracer, _ := newTracer(
				t, collector.URL, "OTEL_TRACES_SAMPLER="+test.sampler, "OTEL_TRACES_SAMPLER_ARG=0.5",
				"OTEL_BSP_MAX_QUEUE_SIZE=10000")
			for range 1000 {
				s := session(t, tracer, about)
				command(t.Context(), s, "SIZE", "f", 213)
				command(t.Context(), s, "QUIT", "", 221)
				s.SessionClosed()
			}
			tracer.Shutdown(t.Context())
			count := map[string]int{}
			for _, span := range collector.Spans() {
				count[span.Name]++
			}
			n := count["session"]
			if n < test.low || n > test.top || count["SIZE"] != n || count["QUIT"] != n {
				t.Errorf("got %v", count)
			}
		})
	}
}

// The environment decides whether there are traces, and how they are sent.
func TestEnvironment(t *testing.T) {
	for _, test := range []struct {
		environ, problem string
		traced           bool
	}{
		{environ: "OTEL_TRACES_EXPORTER=otlp", traced: true},
		{environ: "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", traced: true},
		{environ: "OTEL_TRACES_EXPORTER=none"},
		{environ: "OTEL_SDK_DISABLED=true"},
		{environ: "OTEL_EXPORTER_OTLP_ENDPOINT="},
		{environ: "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", problem: "want http/protobuf"},
		{environ: "OTEL_BSP_MAX_QUEUE_SIZE=many", problem: "OTEL_BSP_MAX_QUEUE_SIZE=many"},
		{environ: "OTEL_RESOURCE_ATTRIBUTES=a", problem: "OTEL_RESOURCE_ATTRIBUTES"},
		// The exporter logs the error itself.
		{environ: "OTEL_EXPORTER_OTLP_CERTIFICATE=" + t.TempDir() + "/none", traced: true},
	} {
		t.Run(test.environ, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			name, value, _ := strings.Cut(test.environ, "=")
			t.Setenv(name, value)
			tracer, err := New(t.Context(), "v1", slog.New(slog.DiscardHandler))
			if (tracer != nil) != test.traced || (err != nil) != (test.problem != "") || err != nil &&
				!strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %v, %v", tracer, err)
			}
			tracer.Shutdown(t.Context())
		})
	}
}

// If a collector rejects spans, they are lost, and the log has one line.
func TestCollectorFails(t *testing.T) {
	collector := servicetest.StartCollector(t)
	tracer, log := newTracer(t, collector.URL, "OTEL_BSP_SCHEDULE_DELAY=10")
	once := func() { session(t, tracer, about).SessionClosed() }
	once()
	collector.Await("the spans", func(spans []servicetest.Span, _ int) bool { return len(spans) == 1 })
	collector.Respond(http.StatusUnauthorized)
	once()
	collector.Await("a refusal", func(_ []servicetest.Span, refused int) bool { return refused > 0 })
	once()
	tracer.Shutdown(t.Context())
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "401") {
		t.Errorf("unexpected log %s", got)
	}
	if ended, sent := tracer.Spans(); ended != 3 || sent != 1 {
		t.Errorf("%d spans ended, but %d were sent", ended, sent)
	}
}

// Shutdown waits at most a few seconds for a hanging collector.
func TestShutdownIsBounded(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-hang }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hang) })
	tracer, log := newTracer(t, server.URL)
	tracer.flush = flushTimeout
	session(t, tracer, about).SessionClosed()
	tracer.Shutdown(t.Context())
	if got := log.String(); !strings.Contains(got, "sending the last spans timed out") {
		t.Errorf("unexpected log %s", got)
	}
}

// Tracing costs nothing when disabled: a nil tracer has no observer, and requests allocate nothing.
func TestOff(t *testing.T) {
	var tracer *Tracer
	if tracer.Session(about) != nil {
		t.Error("unexpected observer")
	}
	ctx := t.Context()
	request := &sessionlog.Request{Service: "S3", Operation: "PutObject", Status: "200"}
	if got := testing.AllocsPerRun(100, func() { AddRequest(ctx, request) }); got != 0 {
		t.Errorf("got %v allocations", got)
	}
	tracer.Shutdown(ctx)
}
