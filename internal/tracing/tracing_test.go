package tracing

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/babelftp/babelftp/internal/sessionlog"
	"github.com/babelftp/babelftp/internal/tracetest"
)

// newTracer sends to a collector, and leaves one that fails alone for a millisecond. Shutdown waits for a machine that does much else.
func newTracer(t *testing.T, url string, sample float64) (*Tracer, *lockedBuffer) {
	t.Helper()
	log := &lockedBuffer{}
	tracer := New(Options{Endpoint: url, Sample: sample, Version: "v1", Log: slog.New(slog.NewTextHandler(log, nil))})
	tracer.collector.retry, tracer.flush = time.Millisecond, time.Minute
	return tracer, log
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

var about = sessionlog.Session{ID: "0123456789abcdef", Remote: "192.0.2.7:4711", Address: netip.MustParseAddr("192.0.2.7"), Tenant: "acme", User: "alice"}

// command runs a command in a session.
func command(ctx context.Context, s *Session, verb, argument string, code int) context.Context {
	ctx = s.Command(ctx, verb, sessionlog.Command{Verb: verb, Argument: argument, Known: true})
	s.Replied(code)
	s.EndCommand()
	return ctx
}

// What a client sends fills no memory, and makes no request that the collector cannot read.
func TestTextsAreBounded(t *testing.T) {
	collector := tracetest.Start(t)
	tracer, _ := newTracer(t, collector.URL+"/", 1)
	mine := about
	mine.User = "alice\xff"
	s := tracer.Session(t.Context(), &mine)
	command(t.Context(), s, "STOR", strings.Repeat("é", 4000)+"\xff", 226)
	command(t.Context(), s, "STOR", "a\xffb", 226)
	s.End()
	tracer.Shutdown(t.Context())
	spans := collector.Spans()
	if len(spans) != 3 {
		t.Fatalf("%+v", spans)
	}
	for _, span := range spans {
		for key, value := range span.Attributes {
			if !utf8.ValidString(value) || len(value) > maxText+2 {
				t.Errorf("%s has %d bytes: %.80q", key, len(value), value)
			}
		}
	}
	if got := spans[1].Attributes["babelftp.command.line"]; got != "STOR a\uFFFDb" {
		t.Errorf("%q", got)
	}
}

// A command is a fault where its reply says that the same command may succeed later, and only there.
func TestStatusOfCommands(t *testing.T) {
	collector := tracetest.Start(t)
	tracer, _ := newTracer(t, collector.URL, 1)
	s := tracer.Session(t.Context(), &about)
	failed := map[string]bool{"226": false, "350": false, "421": true, "451": true, "530": false, "550": false}
	for _, code := range []int{226, 350, 421, 451, 530, 550} {
		command(t.Context(), s, "NOOP", "", code)
	}
	ctx := s.Command(t.Context(), "RETR", sessionlog.Command{Verb: "RETR", Argument: "f", Known: true})
	s.EndCommand() // cut without a reply
	s.EndCommand()
	s.Transferred(1, 1)
	s.Replied(200)
	AddRequest(ctx, &sessionlog.Request{Service: "S3", Operation: "AbortMultipartUpload", Status: "204", Begin: time.Now()}) // later than its command
	tracer.Shutdown(t.Context())
	spans := collector.Spans()
	if len(spans) != len(failed)+2 {
		t.Fatalf("%+v", spans)
	}
	for _, span := range spans[:len(failed)] {
		code := span.Attributes["babelftp.reply.code"]
		want, known := failed[code]
		if !known || span.Failed != want || (span.Attributes["error.type"] != "") != (code >= "400") {
			t.Errorf("%+v", span)
		}
	}
	cut, late := spans[len(failed)], spans[len(failed)+1]
	if _, has := cut.Attributes["babelftp.reply.code"]; has || late.Parent != cut.ID {
		t.Errorf("%+v, then %+v", cut, late)
	}
}

// A share of the sessions is traced, each with all of its commands.
func TestSample(t *testing.T) {
	collector := tracetest.Start(t)
	for _, sample := range []float64{0, 1} {
		tracer, _ := newTracer(t, collector.URL, sample)
		for range 1000 {
			if traced := tracer.Session(t.Context(), &about) != nil; traced != (sample == 1) {
				t.Fatalf("sample %v: %v", sample, traced)
			}
		}
		tracer.Shutdown(t.Context())
	}
	tracer, _ := newTracer(t, collector.URL, 0.5)
	defer tracer.Shutdown(t.Context())
	traced := 0
	const sessions = 10_000
	for range sessions {
		if tracer.Session(t.Context(), &about) != nil {
			traced++
		}
	}
	if traced < sessions*4/10 || traced > sessions*6/10 { // by chance once in 10^88
		t.Errorf("%d of %d", traced, sessions)
	}
}

// A collector that is busy gets the spans later. One that refuses them does not get them again, and the log has one line.
func TestCollectorFails(t *testing.T) {
	collector := tracetest.Start(t)
	tracer, log := newTracer(t, collector.URL, 1)
	session := func() { tracer.Session(t.Context(), &about).End() } // of one span, which no second request can separate
	collector.Answer(http.StatusServiceUnavailable)
	session()
	collector.Await("two attempts", func(_ []tracetest.Span, refused int) bool { return refused >= 2 })
	collector.Answer(http.StatusOK)
	collector.Await("the spans", func(spans []tracetest.Span, _ int) bool { return len(spans) == 1 })
	if log.String() != "" {
		t.Error(log.String())
	}
	busy := 0 // how often the collector was
	collector.Await("no more", func(_ []tracetest.Span, refused int) bool { busy = refused; return true })
	collector.Answer(http.StatusUnauthorized)
	session()
	collector.Await("a refusal", func(_ []tracetest.Span, refused int) bool { return refused > busy })
	collector.Answer(http.StatusFound) // a redirection, which must not get the headers
	session()
	tracer.Shutdown(t.Context())
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `err="the collector answers 401 Unauthorized" spans=1 more=0`) {
		t.Errorf("the log has %s", got)
	}
	if ended, sent := tracer.Spans(); ended != 3 || sent != 1 {
		t.Errorf("%d spans ended, %d sent", ended, sent)
	}
}

// While the collector takes nothing, spans wait in a queue that has an end, and no session waits for it.
func TestQueueIsBounded(t *testing.T) {
	collector := tracetest.Start(t)
	collector.Answer(http.StatusServiceUnavailable)
	tracer, _ := newTracer(t, collector.URL, 1)
	const spans = 3 * (maxQueue + maxBatch)
	s := tracer.Session(t.Context(), &about)
	for i := range spans {
		command(t.Context(), s, "SIZE", fmt.Sprint(i), 213)
	}
	collector.Answer(http.StatusOK)
	command(t.Context(), s, "QUIT", "", 221)
	s.End()
	tracer.Shutdown(t.Context())
	ended, sent := tracer.Spans()
	if got := int64(len(collector.Spans())); ended != spans+2 || sent != got || got > maxQueue+2*maxBatch {
		t.Errorf("%d spans ended, %d sent, and the collector has %d", ended, sent, got)
	}
}

// Shutdown waits for a collector that hangs a few seconds at most.
func TestShutdownIsBounded(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-hang }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hang) })
	tracer, log := newTracer(t, server.URL, 1)
	tracer.flush = flushTimeout
	tracer.Session(t.Context(), &about).End()
	tracer.Shutdown(t.Context())
	if got := log.String(); !strings.Contains(got, "the last spans could not be sent in time") {
		t.Errorf("the log has %s", got)
	}
}

// Without traces there is nothing to pay: a nil tracer and a nil session do nothing, and take no memory.
func TestOff(t *testing.T) {
	var tracer *Tracer
	ctx := t.Context()
	request := &sessionlog.Request{Service: "S3", Operation: "PutObject", Status: "200"}
	if got := testing.AllocsPerRun(100, func() {
		s := tracer.Session(ctx, &about)
		if command(ctx, s, "STOR", "f", 226) != ctx {
			t.Error("the context is another one")
		}
		s.Transferred(7, time.Millisecond)
		AddRequest(ctx, request)
		s.End()
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
	tracer.Shutdown(ctx)
}
