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
			t.Errorf("%s: %t, want %t", step.label, far, step.want)
		}
	}
}

// TestGains splits a listing, and checks that no other listing is split for some time if that was not faster.
func TestGains(t *testing.T) {
	const page = 2 * SlowPage
	var s Stats
	now := time.Unix(1e9, 0)
	s.Pages.Observe(now, page)
	if !s.SplitsListings(now) {
		t.Error("listings are not split where nothing is known of the distance")
	}
	s.Observe(now, FarAway)
	if !s.Pages.Gains(now, page/2) || s.Pages.BacksOff(now) || !s.SplitsListings(now) {
		t.Error("a split that was twice as fast is not repeated")
	}
	if s.Pages.Gains(now, page) || !s.Pages.BacksOff(now) || s.SplitsListings(now) {
		t.Error("a split that was not faster is repeated")
	}
	if later := now.Add(splitBackoff); s.Pages.BacksOff(later) {
		t.Error("no listing is split any more")
	}
	s.Observe(now, FarAway/2)
	s.Pages.Observe(now.Add(splitBackoff), page)
	if s.SplitsListings(now.Add(splitBackoff)) {
		t.Error("listings of a near server are split")
	}
}
