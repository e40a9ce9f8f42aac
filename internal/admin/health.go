package admin

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// A Phase is a stage in the life of a server.
type Phase int32

// The phases, in the order in which a server passes through them.
const (
	Starting Phase = iota
	Serving
	Draining
)

// A Probe serves the health checks of a server.
type Probe struct {
	// Buckets returns the number of buckets, and how many of them cannot be used.
	Buckets func() (all, down int)

	phase atomic.Int32
}

// SetPhase moves to a phase. It does nothing if the server is already in that phase or a later one.
func (h *Probe) SetPhase(p Phase) {
	for {
		now := h.phase.Load()
		if now >= int32(p) || h.phase.CompareAndSwap(now, int32(p)) {
			return
		}
	}
}

// IsIn reports whether the server is in phase p.
func (h *Probe) IsIn(p Phase) bool { return Phase(h.phase.Load()) == p }

// Handler returns the handler of the metrics listener, which serves the health checks next to the metrics.
func (h *Probe) Handler(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", h.ready)
	return mux
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // the client may have disconnected
}

// ready reports whether the server accepts new sessions: its listeners are open, the other replicas know it,
// and it is not draining. Unusable buckets do not make it unready, because a Service without ready pods loses
// its endpoints, and running sessions would lose their data connections. The response only mentions them.
func (h *Probe) ready(w http.ResponseWriter, _ *http.Request) {
	switch Phase(h.phase.Load()) {
	case Starting:
		writeText(
			w, http.StatusServiceUnavailable,
			"starting: the listeners are not open yet, the other replicas do not accept relays from this one yet, or "+
				"the users or custom resources are not known yet")
	case Draining:
		writeText(w, http.StatusServiceUnavailable, "draining: waiting for running transfers; new sessions are not accepted")
	case Serving:
		text := "ready"
		all, down := h.Buckets()
		if down > 0 {
			text = fmt.Sprintf(
				"ready\n%d of %d buckets cannot be used; see babelftp_bucket_up in /metrics, and the log", down, all)
		}
		writeText(w, http.StatusOK, text)
	}
}
