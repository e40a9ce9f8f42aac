package driver

import (
	"testing"
	"time"

	"github.com/babelftp/babelftp/driver/internal/endpoint"
)

// A simulation is a download from a server that sends so much by a connection and so much in all, to a client that takes so much.
// All are bytes a second.
type simulation struct {
	connection, server, client float64
	latency                    time.Duration
	memory                     int // streams that there is memory for
}

// run returns the width at the end of a time, without what is being tried then, and how long it took to get there.
func (s simulation) run(route *Route, now time.Time, total time.Duration) (width int, reached time.Duration) {
	const step = time.Millisecond
	p := pace{lesson: &route.downloads, most: 16, latency: s.latency}
	r := reading{at: now, streams: 1}
	p.start(r)
	changed := time.Duration(0) // when the width was changed
	streams := 1.0              // that bring bytes
	for elapsed := time.Duration(0); elapsed < total; elapsed += step {
		if elapsed-changed >= s.latency {
			streams = float64(min(p.width, s.memory))
		}
		supply := min(streams*s.connection, s.server)
		rate := min(supply, s.client)
		r.at = r.at.Add(step)
		r.own += int64(rate * step.Seconds())
		r.all += int64(rate * step.Seconds())
		r.waited += time.Duration(float64(step) * max(0, 1-supply/s.client))
		r.streams, r.wider = min(p.width, s.memory), growth*p.width
		before := p.width
		if p.look(r); p.width != before {
			changed, reached = elapsed, elapsed
		}
	}
	if p.trial != nil {
		return p.trial.width, reached
	}
	return p.width, reached
}

func TestPace(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		label string
		simulation
		least, most int
	}{
		{"distant-server", simulation{25 * mib, 10_000 * mib, 2000 * mib, 40 * time.Millisecond, 16}, 16, 16},
		{"slow-client", simulation{25 * mib, 10_000 * mib, 10 * mib, 40 * time.Millisecond, 16}, 1, 1},
		{"client-a-little-faster", simulation{25 * mib, 10_000 * mib, 40 * mib, 40 * time.Millisecond, 16}, 1, 2},
		{"client-of-four-streams", simulation{25 * mib, 10_000 * mib, 120 * mib, 40 * time.Millisecond, 16}, 4, 6},
		{"server-that-is-as-fast-with-one", simulation{500 * mib, 500 * mib, 2000 * mib, time.Millisecond, 16}, 1, 1},
		{"server-that-has-no-more-than-four", simulation{25 * mib, 100 * mib, 2000 * mib, 40 * time.Millisecond, 16}, 4, 4},
		{"memory-for-six", simulation{25 * mib, 10_000 * mib, 2000 * mib, 40 * time.Millisecond, 6}, 6, 6},
	} {
		t.Run(test.label, func(t *testing.T) {
			width, reached := test.run(NewRoute(), time.Unix(1e9, 0), 2900*time.Millisecond)
			if width < test.least || width > test.most {
				t.Errorf("width is %d, want %d to %d", width, test.least, test.most)
			}
			if width == 16 && reached > 250*time.Millisecond {
				t.Errorf("it took %v to get there", reached)
			}
		})
	}
}

// TestPaceLearns checks that a download goes by what others on the route have found out.
func TestPaceLearns(t *testing.T) {
	const mib = 1 << 20
	now := time.Unix(1e9, 0)
	distant := simulation{25 * mib, 10_000 * mib, 2000 * mib, 40 * time.Millisecond, 16}
	route := NewRoute()
	_, first := distant.run(route, now, time.Second)
	now = now.Add(time.Second)
	if width, second := distant.run(route, now, time.Second); width != 16 || second >= first {
		t.Errorf("the second download had %d streams after %v, the first took %v", width, second, first)
	}

	near := simulation{500 * mib, 500 * mib, 2000 * mib, time.Millisecond, 16}
	route = NewRoute()
	near.run(route, now, 400*time.Millisecond)
	p := pace{lesson: &route.downloads, most: 16}
	r := reading{at: now.Add(400 * time.Millisecond), streams: 1, wider: growth}
	p.start(r)
	starve := func(d time.Duration) {
		r.at, r.own, r.waited = r.at.Add(d), r.own+100*mib, r.waited+d
		p.look(r)
	}
	if starve(50 * time.Millisecond); p.width != 1 {
		t.Errorf("it tries %d streams, which were of no use a moment ago", p.width)
	}
	if starve(endpoint.MaxBackoff); p.width != growth {
		t.Errorf("much later it tries %d streams, want %d", p.width, growth)
	}
}
