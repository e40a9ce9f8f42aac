package driver

import (
	"testing"
	"time"
)

// TestRouteGuesses checks that a server is taken for a distant one as long as it has answered nothing soon.
func TestRouteGuesses(t *testing.T) {
	const most = 16
	r, now := NewRoute(), time.Unix(1e9, 0)
	for _, step := range []struct {
		label string
		later time.Duration
		took  time.Duration // of an answer, 0 for none
		want  int
	}{
		{"nothing-is-known", 0, 0, 1},
		{"slow-answer", 0, 2 * farAway, most},
		{"fast-answer", time.Second, farAway / 2, 1},
		{"busy", guessMemory, 2 * farAway, 1},
		{"distant-for-long", 2 * guessMemory, 2 * farAway, most},
		{"nothing-of-late", 3 * guessMemory, 0, 1},
	} {
		now = now.Add(step.later)
		if step.took > 0 {
			r.answered(now, step.took)
		}
		if guess := r.guess(now, most); guess != step.want {
			t.Errorf("%s: %d, want %d", step.label, guess, step.want)
		}
	}
}
