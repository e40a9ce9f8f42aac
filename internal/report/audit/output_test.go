package audit_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// The file "-" is standard output, and not a file with this name.
func TestStandardOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	var stdout bytes.Buffer
	o, err := audit.NewOutput(t.Context(), config.Audit{File: "-"}, &stdout,
		func(string) func(int) { return func(int) {} }, slog.New(slog.DiscardHandler))
	must.OK(t, err)
	must.OK(t, o.Open())
	o.Add(report.Owner{}, []byte("{}\n"))
	o.Close(t.Context())
	if got := stdout.String(); got != "{}\n" {
		t.Errorf("unexpected standard output %q", got)
	}
}

// While the receiver responds with 503, commands are refused. At most a second after it responds with 2xx, they are
// accepted. The receiver gets all lines.
func TestReceiverRequired(t *testing.T) {
	var up atomic.Bool
	var got []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if !up.Load() || err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		got = append(got, string(body))
	}))
	t.Cleanup(receiver.Close)
	o, err := audit.NewOutput(t.Context(), config.Audit{
		Required: true, Webhook: config.Receiver{URL: receiver.URL, Secret: value.NewSecret("0123456789abcdef")},
	}, io.Discard, func(string) func(int) { return func(lines int) { t.Errorf("got %d lost lines", lines) } },
		slog.New(slog.NewTextHandler(t.Output(), nil)))
	must.OK(t, err)
	must.OK(t, o.Open())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // a write counts as failing after ten seconds
	defer cancel()
	o.Add(report.Owner{}, []byte(`{"event":"a\n,"}`+"\n"))
	for !o.Refuses(report.Owner{}) && ctx.Err() == nil {
		runtime.Gosched()
	}
	o.Add(report.Owner{}, []byte("{}\n"))
	up.Store(true)
	for o.Refuses(report.Owner{}) && ctx.Err() == nil {
		runtime.Gosched()
	}
	if ctx.Err() != nil {
		t.Errorf("Refuses() = %v", o.Refuses(report.Owner{}))
	}
	o.Close(t.Context())
	if want := []string{`[{"event":"a\n,"}]`, "[{}]"}; !slices.Equal(got, want) {
		t.Errorf("the receiver got %q, want %q", got, want)
	}
}
