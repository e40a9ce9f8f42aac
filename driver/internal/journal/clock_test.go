package journal

import (
	"strings"
	"testing"
)

// TestWaitIsMonotonic checks that setting the clock cannot make an upload appear stalled.
func TestWaitIsMonotonic(t *testing.T) {
	var w ClientWait
	if w.tooLong() {
		t.Error("tooLong() = true without a wait")
	}
	w.Begin()
	if since := w.since.Load().String(); !strings.Contains(since, " m=") {
		t.Errorf("%s has no monotonic reading", since)
	}
	if w.tooLong() {
		t.Error("tooLong() = true at the beginning of a wait")
	}
}
