package admin

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// A Phase is how far a server has come.
type Phase int32

// A server goes through these phases in turn.
const (
	Starting Phase = iota
	Serving
	Draining
)

// A Probe answers for a server.
type Probe struct {
	// Buckets tells how many buckets there are, and how many of them cannot be used.
	Buckets func() (all, down int)

	phase atomic.Int32
}

// Enter begins a phase, unless a later one has begun.
func (h *Probe) Enter(p Phase) {
	for {
		now := h.phase.Load()
		if now >= int32(p) || h.phase.CompareAndSwap(now, int32(p)) {
			return
		}
	}
}

// In tells whether a phase is the current one.
func (h *Probe) In(p Phase) bool { return Phase(h.phase.Load()) == p }

// Handler is what the metrics listener serves.
func (h *Probe) Handler(metrics http.Handler) http.Handler {
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

// ready tells whether the server takes new sessions: it listens, the other replicas can know it, and it is not about
// to stop. S3 does not count: without ready pods a Service loses its endpoints, and sessions lose their data
// connections. So the text counts the buckets that cannot be used, and the status is 200.
func (h *Probe) ready(w http.ResponseWriter, _ *http.Request) {
	switch Phase(h.phase.Load()) {
	case Starting:
		answer(
			w, http.StatusServiceUnavailable,
			"starting: the listeners are not open yet, or the other replicas do not take relays from this one yet")
	case Draining:
		answer(w, http.StatusServiceUnavailable, "draining: running transfers end, new sessions are not accepted")
	case Serving:
		text := "ready"
		all, down := h.Buckets()
		if down > 0 {
			text = fmt.Sprintf(
				"ready\n%d of %d buckets cannot be used; see babelftp_bucket_up in /metrics, and the log", down, all)
		}
		answer(w, http.StatusOK, text)
	}
}
