package server

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/s3client"
)

// requestTimeout bounds the headers of a request to the metrics listener.
const requestTimeout = 10 * time.Second

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

// ready tells whether the server takes new sessions: it listens, and is not about to stop. S3 does not count: without ready pods a Service
// loses its endpoints, and sessions lose their data connections. So the text counts the buckets that cannot be used, and the status is 200.
func (h *health) ready(w http.ResponseWriter, _ *http.Request) {
	switch phase(h.phase.Load()) {
	case starting:
		answer(w, http.StatusServiceUnavailable, "starting: the listeners are not open yet")
	case draining:
		answer(w, http.StatusServiceUnavailable, "draining: running transfers end, new sessions are not accepted")
	case serving:
		text, down := "ready", 0
		for _, b := range h.buckets {
			if up, known := b.Up(); known && !up {
				down++
			}
		}
		if down > 0 {
			text = fmt.Sprintf("ready\n%d of %d buckets cannot be used; see babelftp_bucket_up in /metrics, and the log", down, len(h.buckets))
		}
		answer(w, http.StatusOK, text)
	}
}
