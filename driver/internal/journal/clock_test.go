package journal

import (
	"strings"
	"testing"
)

// Since when a client is waited for has a monotonic reading: a clock that is set stalls no upload.
func TestWaitIsMonotonic(t *testing.T) {
	var w ClientWait
	if w.tooLong() {
		t.Error("an upload that has not waited has waited too long")
	}
	w.Begin()
	if since := w.since.Load().String(); !strings.Contains(since, " m=") {
		t.Errorf("%s has no monotonic reading", since)
	}
	if w.tooLong() {
		t.Error("an upload that begins to wait has waited too long")
	}
}
