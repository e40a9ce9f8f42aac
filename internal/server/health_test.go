package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/configtest"
	"github.com/babelftp/babelftp/internal/ftptest"
	"github.com/babelftp/babelftp/internal/s3client"
	"github.com/babelftp/babelftp/internal/s3test"
)

func TestMetricsListener(t *testing.T) {
	s := s3test.Start(t, "embedded")
	srv := start(t, configtest.New(t, s), Options{AWS: s.AWSConfig(), Version: "v1.2.3"})
	c := ftptest.Dial(t, srv.Addr().String())
	c.Login("alice", configtest.Password)
	c.Store("file", "seven b")
	c.Command(500, "PEANUTS")
	c.Command(221, "QUIT")
	refused := ftptest.Dial(t, srv.Addr().String())
	refused.Command(331, "USER alice")
	refused.Command(530, "PASS wrong")

	status, body := get(t, srv, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics answers %d", status)
	}
	for _, line := range []string{
		`babelftp_build_info{version="v1.2.3"} 1`,
		"babelftp_sessions_total 2",
		`babelftp_logins_total{result="accepted",tenant="acme"} 1`,
		`babelftp_logins_total{result="refused",tenant=""} 1`,
		`babelftp_commands_total{class="5xx",command=""} 1`,
		`babelftp_commands_total{class="2xx",command="STOR"} 1`,
		`babelftp_transfers_total{direction="upload",result="complete",tenant="acme"} 1`,
		`babelftp_transfer_bytes_total{direction="upload",tenant="acme"} 7`,
		`babelftp_s3_requests_total{operation="PutObject",status="200"} 1`,
		`babelftp_s3_requests_total{operation="HeadBucket",status="200"} 1`,
		`babelftp_s3_request_duration_seconds_count{operation="PutObject"} 1`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n"} {
		if status, body := get(t, srv, path); status != http.StatusOK || body != want {
			t.Errorf("%s answers %d %s", path, status, body)
		}
	}
	if status, _ := get(t, srv, "/"); status != http.StatusNotFound {
		t.Errorf("/ answers %d", status)
	}
}

// probe asks /readyz.
func probe(t *testing.T, h *health) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
	h.handler(http.NotFoundHandler()).ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

// The server is ready while one bucket is reached, and S3 is not asked at each probe.
func TestReady(t *testing.T) {
	h := newHealth(make([]*s3client.Bucket, 2), slog.New(slog.DiscardHandler))
	checks := 0
	found := []error{nil, nil}
	h.check = func(context.Context, []*s3client.Bucket) []error { checks++; return found }
	now := time.Now()
	h.now = func() time.Time { return now }
	broken := errors.New("tenant acme: out of reach")

	for _, step := range []struct {
		name   string
		do     func()
		status int
		body   string
		checks int
	}{
		{"starting", func() {}, 503, "starting: the listeners are not open yet", 0},
		{"serving", func() { h.enter(serving) }, 200, "ready", 1},
		{"asked-again", func() { found = []error{broken, broken} }, 200, "ready", 1},
		{
			"none-reached", func() { now = now.Add(reachableFor) }, 503,
			"2 of 2 buckets cannot be reached\ntenant acme: out of reach\ntenant acme: out of reach", 2,
		},
		{
			"one-reached", func() { now = now.Add(reachableFor); found = []error{broken, nil} }, 200,
			"1 of 2 buckets cannot be reached\ntenant acme: out of reach", 3,
		},
		{"reached-at-another-place", h.reached, 200, "ready", 3},
		{"draining", func() { h.enter(draining) }, 503, "draining: running transfers end, new sessions are not accepted", 3},
	} {
		step.do()
		status, body := probe(t, h)
		if status != step.status || body != step.body || checks != step.checks {
			t.Errorf("%s: %d %s after %d checks", step.name, status, body, checks)
		}
	}
}

// A probe that gives up does not stop the check that it began, whose answer is for the next one.
func TestReadyOutlivesItsProbe(t *testing.T) {
	h := newHealth(make([]*s3client.Bucket, 1), slog.New(slog.DiscardHandler))
	h.enter(serving)
	release := make(chan struct{})
	h.check = func(ctx context.Context, _ []*s3client.Bucket) []error {
		<-release
		return []error{ctx.Err()}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.unreachable(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("the probe did not give up: %v", err)
	}
	close(release)
	if status, body := probe(t, h); status != http.StatusOK {
		t.Errorf("the next probe: %d %s", status, body)
	}
}
