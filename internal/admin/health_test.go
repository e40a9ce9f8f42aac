package admin

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// The server is ready while the listeners are open and it is not draining.
func TestReady(t *testing.T) {
	h := &Probe{Buckets: func() (int, int) { return 1, 0 }}
	for _, step := range []struct {
		phase  Phase
		status int
		body   string
	}{
		{Starting, 503,
			"starting: the listeners are not open yet, the other replicas do not accept relays from this one yet, or " +
				"the users or custom resources are not known yet\n"},
		{Serving, 200, "ready\n"},
		{Draining, 503, "draining: waiting for running transfers; new sessions are not accepted\n"},
		// phases cannot go back
		{Serving, 503, "draining: waiting for running transfers; new sessions are not accepted\n"},
	} {
		h.SetPhase(step.phase)
		w := httptest.NewRecorder()
		h.Handler(http.NotFoundHandler()).ServeHTTP(
			w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		if w.Code != step.status || w.Body.String() != step.body {
			t.Errorf("phase %d: got status %d %s", step.phase, w.Code, w.Body)
		}
	}
}
