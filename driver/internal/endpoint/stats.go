// Package endpoint keeps statistics of an S3 server: its distance, and how long a page of a listing takes.
//
// All requests to a server report to one [Stats]: GetObject and HeadObject by [Stats.Observe], pages of ListObjectsV2 that follow another one
// by [PageTimes.Observe]. Transfers and listings ask it whether several requests in parallel may be faster.
package endpoint

import (
	"sync"
	"time"
)

const (
	// FarAway is the shortest answer of a server that is not near. A near server that is slow is busy, and several requests in parallel do not
	// get answers sooner.
	FarAway = 20 * time.Millisecond

	// SlowPage is how long a page of a listing takes where it may be worth it to split listings.
	SlowPage = 40 * time.Millisecond

	// splitGain is how many times as fast a listing must become by being split.
	splitGain = 1.5

	// splitBackoff is how long no listing is split after it was not worth it, the first time.
	splitBackoff = 30 * time.Second

	// recent is how long the time counts that an answer took: a server may move, or have been busy.
	recent = time.Minute

	// nearMemory is how long a fast answer shows that a server is near: one that is near may be busy for long.
	nearMemory = time.Hour

	// pageInertia is the share, as one part of so many, by which a longer time for a page counts.
	pageInertia = 8

	// backoffGrowth is how many times as long each further back-off is, up to MaxBackoff.
	backoffGrowth = 4
)

// MaxBackoff is the longest back-off, after which everything is tried again.
const MaxBackoff = 5 * time.Minute

// Stats are the statistics of an S3 server. The zero value knows nothing. They are safe for concurrent use.
type Stats struct {
	light minimum // of answers that need little work
	any   minimum // of whatever a near server may answer soon

	Pages PageTimes
}

// Observe notes how long an answer took to begin that needs little work.
func (s *Stats) Observe(now time.Time, took time.Duration) {
	s.light.add(now, took, recent)
	s.ObserveAny(now, took)
}

// ObserveAny notes how long an answer took that may need more work.
func (s *Stats) ObserveAny(now time.Time, took time.Duration) { s.any.add(now, took, nearMemory) }

// RTT estimates the round-trip time: the shortest recent answer that needs little work, 0 where there was none.
func (s *Stats) RTT(now time.Time) time.Duration { return s.light.of(now, recent) }

// Nearest is the shortest answer of the last hour, 0 where there was none.
func (s *Stats) Nearest(now time.Time) time.Duration { return s.any.of(now, nearMemory) }

// Far tells whether the server has answered nothing soon in the last hour.
func (s *Stats) Far(now time.Time) bool { return s.Nearest(now) >= FarAway }

// SplitsListings tells whether it may be worth it to split a listing.
func (s *Stats) SplitsListings(now time.Time) bool {
	return s.RTT(now) >= FarAway && s.Pages.Slow(now)
}

// A minimum is the shortest of the durations that were added recently: in a period of time, or in up to twice as long.
type minimum struct {
	mu    sync.Mutex
	least [2]time.Duration // in the present period and in the one before, 0 where there were none
	since time.Time        // when the present period began
}

func (m *minimum) add(now time.Time, took, period time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if age := now.Sub(m.since); age > period {
		if age > 2*period {
			m.least[0] = 0
		}
		m.least = [2]time.Duration{0, m.least[0]}
		m.since = now
	}
	m.least[0] = shorter(m.least[0], took)
}

// of is the minimum, 0 where nothing was added recently.
func (m *minimum) of(now time.Time, period time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.since) > 2*period {
		return 0
	}
	return shorter(m.least[0], m.least[1])
}

// shorter is the shorter of two durations, of which 0 is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// A Backoff is a time without another trial after one that failed. The zero value has not begun.
type Backoff struct {
	until  time.Time
	length time.Duration // of the last one, 0 after Reset
}

// Begin begins a back-off that is longer than the last one, and takes so long if it is the first.
func (b *Backoff) Begin(now time.Time, first time.Duration) {
	b.length = min(max(backoffGrowth*b.length, first), MaxBackoff)
	b.until = now.Add(b.length)
}

// Active tells whether the back-off has not ended.
func (b *Backoff) Active(now time.Time) bool { return now.Before(b.until) }

// Reset makes the next back-off the first.
func (b *Backoff) Reset() { b.length = 0 }

// PageTimes measure how long a page of a listing takes that a token asks for while no other request is under way. They also record whether
// splitting slow listings was faster.
type PageTimes struct {
	mu       sync.Mutex
	took     time.Duration
	observed time.Time // when a page came last
	backoff  Backoff
}

// Observe notes how long a page took. A shorter time counts at once and a longer one little by little: the server may have had other
// work to do.
func (p *PageTimes) Observe(now time.Time, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.After(p.observed.Add(recent)) || took < p.took {
		p.took = took
	} else {
		p.took += (took - p.took) / pageInertia
	}
	p.observed = now
}

// Slow tells whether pages take so long that to split a listing may be worth it.
func (p *PageTimes) Slow(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took >= SlowPage && now.Before(p.observed.Add(recent)) && !p.backoff.Active(now)
}

// BacksOff tells whether no listing shall be split for a while.
func (p *PageTimes) BacksOff(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.backoff.Active(now)
}

// Gains tells whether it was worth it to split a listing, by the time for each page that came. If not, it begins to back off.
func (p *PageTimes) Gains(now time.Time, each time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if float64(p.took) < splitGain*float64(each) {
		p.backoff.Begin(now, splitBackoff)
		return false
	}
	p.backoff.Reset()
	return true
}
