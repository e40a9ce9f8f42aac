package sessionlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// newSession returns the observer of a session, which logs text lines at this level.
func newSession(t *testing.T, out io.Writer, level slog.Level) *Session {
	t.Helper()
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: report.Escape}
	return new(Log).Session(slog.New(slog.NewTextHandler(out, options)), nil, &report.Client{ID: "1"})
}

// Control characters from a client have no effect on the terminal that displays the log.
func TestControlCharactersAreEscaped(t *testing.T) {
	var out bytes.Buffer
	s := newSession(t, &out, slog.LevelDebug)
	s.CommandBegan(t.Context(), report.Command{Verb: "STOR", Argument: "a\x1b[31m\u202eb\nlevel=ERROR", Known: true})
	if got := out.String(); strings.ContainsAny(got, "\x1b\u202e") || strings.Count(got, "\n") != 1 {
		t.Errorf("got %q", got)
	}
}

func TestNewRule(t *testing.T) {
	for _, test := range []struct {
		address, tenant, user string
		d                     time.Duration
		want                  string
	}{
		{"", "", "", time.Minute, "missing address, tenant or user"},
		{"", "acme", "", 0, "invalid duration 0s: want more than 0 and at most 24h0m0s"},
		{"", "acme", "", 25 * time.Hour, "invalid duration 25h0m0s: want more than 0 and at most 24h0m0s"},
		{"example.com", "", "", time.Minute,
			`invalid address "example.com": want an address like 192.0.2.7 or a network like 192.0.2.0/24`},
	} {
		if _, err := NewRule(test.address, test.tenant, test.user, test.d); err == nil || err.Error() != test.want {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// A session gets debug lines while all fields of a rule match, whatever the level of the log. Other sessions get none.
func TestSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		base := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError}))
		at := netip.MustParseAddr
		scanner := &report.Client{ID: "1", Address: at("192.0.2.7"), Tenant: "acme", User: "scanner"}
		var w Switch
		for _, test := range []struct {
			address, tenant, user string
			about                 *report.Client
			want                  bool
		}{
			{"192.0.2.7", "", "", scanner, true},
			{"::ffff:192.0.2.7", "", "", scanner, true},
			{"192.0.2.0/24", "", "", scanner, true},
			{"192.0.2.8", "", "", scanner, false},
			{"", "acme", "", scanner, true},
			{"", "umbrella", "", scanner, false},
			{"", "", "scanner", scanner, true},
			{"", "", "scanner@acme", scanner, true},
			{"", "", "scanner@umbrella", scanner, false},
			{"", "", "alice", scanner, false},
			{"192.0.2.7", "acme", "scanner", scanner, true},
			{"192.0.2.7", "umbrella", "", scanner, false},
			{"", "acme", "", &report.Client{Address: at("2001:db8::1")}, false},
			{"2001:db8::/32", "", "", &report.Client{Address: at("2001:db8::1")}, true},
		} {
			log := w.logger(base, test.about) // an open session
			rule, err := NewRule(test.address, test.tenant, test.user, time.Minute)
			must.OK(t, err)
			w.Add(rule)
			if got := log.With("more", 1).WithGroup("g").Enabled(t.Context(), slog.LevelDebug); got != test.want {
				t.Errorf("%+v: got %v for %+v, want %v", rule, got, test.about, test.want)
			}
			if held := w.Clear(); len(held) != 1 || len(w.Rules()) != 0 || log.Enabled(t.Context(), slog.LevelDebug) {
				t.Errorf("%+v has no end", held)
			}
		}
		rule, err := NewRule("", "acme", "", time.Minute)
		must.OK(t, err)
		w.Add(rule)
		log := new(Log).Session(base, &w, scanner)
		log.CommandBegan(t.Context(), report.Command{Verb: "NOOP", Known: true})
		time.Sleep(time.Minute)
		log.CommandBegan(t.Context(), report.Command{Verb: "QUIT", Known: true})
		if got := out.String(); !strings.Contains(got, "line=NOOP") || strings.Contains(got, "QUIT") ||
			len(w.Rules()) != 0 {
			t.Errorf("the rule did not end in time: %s", got)
		}
		if (*Switch)(nil).logger(base, scanner).Enabled(t.Context(), slog.LevelDebug) {
			t.Error("got debug lines without a switch")
		}
	})
}

// The requests of a session are only logged if its commands are.
func TestLogRequest(t *testing.T) {
	var out bytes.Buffer
	request := &Request{Operation: "PutObject", Status: "200", ID: "request-7", Duration: 12 * time.Millisecond}
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		LogRequest(newSession(t, &out, level).CommandBegan(t.Context(), report.Command{}), request)
	}
	LogRequest(t.Context(), request)
	if got := out.String(); strings.Count(got, "S3 request") != 1 ||
		!strings.Contains(got, "operation=PutObject status=200 duration_ms=12 s3_request_id=request-7") {
		t.Error(got)
	}
}

// An upload is a transfer without data.
type upload struct{ report.Progress }

func (upload) Direction() string        { return "upload" }
func (upload) Bytes() int64             { return 5 }
func (upload) Elapsed() time.Duration   { return 0 }
func (upload) FirstByte() time.Duration { return 0 }

// failed returns the outcome of a failed upload.
func failed() *report.Outcome {
	return &report.Outcome{Code: 426, Transfer: &report.Transfer{
		Progress: upload{}, Verb: "STOR", Path: "/f", TLS: true, Offset: 3,
		Connection: errors.New("the data connection was lost"), Storage: context.Canceled,
	}}
}

// The line of a transfer omits missing values. It contains what S3 returned about the file, or why the transfer
// failed.
func TestTransfers(t *testing.T) {
	stored := failed()
	stored.Code, stored.URI = 226, "s3://bucket/f"
	stored.Stored = &report.StoredFile{ETag: "abc", Checksum: "sha256:d", RequestID: "request-7", Verified: "s3"}
	for want, outcome := range map[string]*report.Outcome{
		`code=226 duration_ms=0 tls=true s3_uri=s3://bucket/f offset=3 etag=abc checksum=sha256:d verified=s3 s3_request_id=request-7`: stored,
		`code=426 duration_ms=0 tls=true offset=3 connection="the data connection was lost" storage="context canceled"`:                failed(),
	} {
		var out bytes.Buffer
		newSession(t, &out, slog.LevelInfo).CommandEnded(t.Context(), outcome)
		want = `msg=transfer session=1 remote="" direction=upload command=STOR path=/f bytes=5 ` + want + "\n"
		if _, got, _ := strings.Cut(out.String(), " msg="); "msg="+got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		out.Reset()
		newSession(t, &out, slog.LevelWarn).CommandEnded(t.Context(), outcome)
		if out.Len() > 0 {
			t.Error(out.String())
		}
	}
}

// A line that belongs to a trace has the trace ID. Lines without a context or of untraced commands have none.
func TestTraceID(t *testing.T) {
	var out bytes.Buffer
	log := newSession(t, &out, slog.LevelInfo)
	of := trace.SpanContextConfig{TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4},
		TraceFlags: trace.FlagsSampled}
	log.CommandEnded(trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(of)), failed())
	of.TraceFlags = 0
	log.CommandEnded(trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(of)), failed())
	log.CommandEnded(t.Context(), failed())
	log.Info("logged in")
	if got := out.String(); strings.Count(got, "\n") != 4 || strings.Count(got, "trace_id") != 1 ||
		!strings.Contains(got, "trace_id=01020300000000000000000000000000\n") {
		t.Error(got)
	}
}
