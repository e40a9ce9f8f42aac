package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/s3client"
)

const (
	// reachableFor is how long an answer about the buckets is good for, so that probes do not become load on S3.
	reachableFor = 10 * time.Second
	// requestTimeout bounds the headers of a request to the metrics listener.
	requestTimeout = 10 * time.Second
)

// A phase is how far a Server has come.
type phase int32

const (
	starting phase = iota
	serving
	draining
)

// health answers the probes.
type health struct {
	phase   atomic.Int32
	buckets []*s3client.Bucket
	check   func(context.Context, []*s3client.Bucket) []error
	now     func() time.Time
	log     *slog.Logger

	mu      sync.Mutex
	errs    []error       // of the buckets that were not reached
	at      time.Time     // when they were asked
	running chan struct{} // closed when the check under way is done; nil without one
}

func newHealth(buckets []*s3client.Bucket, log *slog.Logger) *health {
	return &health{buckets: buckets, check: checkAll, now: time.Now, log: log}
}

func (h *health) enter(p phase) { h.phase.Store(int32(p)) }

// handler is what the metrics listener serves.
func (h *health) handler(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", h.ready)
	return mux
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // a probe that has gone needs no answer
}

// ready tells whether the server can take new sessions: it listens, is not about to stop, and recently reached a bucket. It names tenants
// whose buckets do not answer. The server stays ready for the others.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	switch phase(h.phase.Load()) {
	case starting:
		answer(w, http.StatusServiceUnavailable, "starting: the listeners are not open yet")
		return
	case draining:
		answer(w, http.StatusServiceUnavailable, "draining: running transfers end, new sessions are not accepted")
		return
	case serving:
	}
	errs, err := h.unreachable(r.Context())
	if err != nil {
		answer(w, http.StatusServiceUnavailable, "S3 has not answered yet")
		return
	}
	text := "ready"
	if len(errs) > 0 {
		text = fmt.Sprintf("%d of %d buckets cannot be reached\n%v", len(errs), len(h.buckets), errors.Join(errs...))
	}
	if len(errs) == len(h.buckets) {
		answer(w, http.StatusServiceUnavailable, text)
		return
	}
	answer(w, http.StatusOK, text)
}

// unreachable returns the errors of the buckets that the server could not reach recently. The error is that of ctx: an answer that comes
// too late for one probe serves the next.
func (h *health) unreachable(ctx context.Context) ([]error, error) {
	h.mu.Lock()
	if h.running == nil && (h.at.IsZero() || h.now().Sub(h.at) >= reachableFor) {
		h.running = make(chan struct{})
		go h.refresh(context.WithoutCancel(ctx), h.running)
	}
	running := h.running
	h.mu.Unlock()
	if running != nil {
		select {
		case <-running:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.errs, nil
}

func (h *health) refresh(ctx context.Context, done chan struct{}) {
	var failed []error
	for _, err := range h.check(ctx, h.buckets) {
		if err != nil {
			h.log.Error("bucket cannot be used; check the credentials, the endpoint and the bucket", "err", err)
			failed = append(failed, err)
		}
	}
	h.mu.Lock()
	h.errs, h.at, h.running = failed, h.now(), nil
	h.mu.Unlock()
	close(done)
}

// reached notes that every bucket has just been reached.
func (h *health) reached() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs, h.at = nil, h.now()
}

// checkAll asks S3 for every bucket, and returns what is wrong in the order of the buckets.
func checkAll(ctx context.Context, buckets []*s3client.Bucket) []error {
	return forEachLimit(buckets, func(b *s3client.Bucket) error { return b.Check(ctx) })
}
