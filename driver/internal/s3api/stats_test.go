package s3api

import (
	"testing"
	"time"
)

// TestFar checks that a server counts as far as long as it has sent no fast response.
func TestFar(t *testing.T) {
	var s Stats
	now := time.Unix(1e9, 0)
	for _, step := range []struct {
		label string
		later time.Duration
		took  time.Duration // until the response; 0 for no response
		want  bool
	}{
		{"nothing-is-known", 0, 0, false},
		{"slow-answer", 0, 2 * FarAway, true},
		{"fast-answer", time.Second, FarAway / 2, false},
		{"busy", nearMemory, 2 * FarAway, false},
		{"distant-for-long", 2 * nearMemory, 2 * FarAway, true},
		{"nothing-recently", 3 * nearMemory, 0, false},
	} {
		now = now.Add(step.later)
		if step.took > 0 {
			s.Observe(now, step.took)
		}
		if far := s.Far(now); far != step.want {
			t.Errorf("%s: got %t, want %t", step.label, far, step.want)
		}
	}
}
