package s3api

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// FarAway is the shortest answer of a server that is not near. A near server that is slow is busy, and several
	// requests in parallel do not get answers sooner.
	FarAway = 20 * time.Millisecond

	// SlowPage is how long a page of a listing takes where it may be worth it to split listings.
	SlowPage = 40 * time.Millisecond

	// splitGain is how many times as fast a listing must become by being split.
	splitGain = 1.5

	// splitBackoff is how long no listing is split after that was not worth it: the server may have been busy.
	splitBackoff = time.Minute

	// recent is how long the time of a page counts: a server may move, or have been busy.
	recent = time.Minute

	// nearMemory is how long a fast answer shows that a server is near: one that is near may be busy for long.
	nearMemory = time.Hour

	// pageInertia is the share, as one part of so many, by which a longer time for a page counts.
	pageInertia = 8
)

// Stats are the statistics of an S3 server. The zero value knows nothing. They are safe for concurrent use.
type Stats struct {
	Pages PageTimes

	mu    sync.Mutex
	least [2]time.Duration // the shortest answers in the present hour and in the one before, 0 where there were none
	since time.Time        // when the present hour began

	metadata atomic.Bool // an object has come back with the metadata it was stored with
}

// Observe notes how long an answer took to begin.
func (s *Stats) Observe(now time.Time, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if age := now.Sub(s.since); age > nearMemory {
		if age > 2*nearMemory {
			s.least[0] = 0
		}
		s.least = [2]time.Duration{0, s.least[0]}
		s.since = now
	}
	s.least[0] = shorter(s.least[0], took)
}

// Nearest is the shortest answer of the last hour or two, 0 where there was none.
func (s *Stats) Nearest(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.since) > 2*nearMemory {
		return 0
	}
	return shorter(s.least[0], s.least[1])
}

// shorter is the shorter of two durations, of which 0 is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Far tells whether the server has answered nothing soon in the last hour.
func (s *Stats) Far(now time.Time) bool { return s.Nearest(now) >= FarAway }

// SplitsListings tells whether it may be worth it to split a listing. The server may also be one of which nothing is
// known: [PageTimes.Gains] shows after the first attempt whether it is.
func (s *Stats) SplitsListings(now time.Time) bool {
	return (s.Far(now) || s.Nearest(now) == 0) && s.Pages.slow(now)
}

// PageTimes measure how long a page of a listing takes that a token asks for while no other request is under way.
// They also record whether splitting slow listings was faster.
type PageTimes struct {
	mu       sync.Mutex
	took     time.Duration
	observed time.Time // when a page came last
	until    time.Time // when the back-off ends
}

// Observe notes how long a page took. A shorter time counts at once and a longer one little by little: the server may
// have had other work to do.
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

// slow tells whether pages take so long that to split a listing may be worth it.
func (p *PageTimes) slow(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took >= SlowPage && now.Before(p.observed.Add(recent)) && !now.Before(p.until)
}

// BacksOff tells whether no listing may be split for a while.
func (p *PageTimes) BacksOff(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Before(p.until)
}

// Gains tells whether it was worth it to split a listing, by the time for each page that came. If not, it begins to
// back off.
func (p *PageTimes) Gains(now time.Time, each time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if float64(p.took) >= splitGain*float64(each) {
		return true
	}
	p.until = now.Add(splitBackoff)
	return false
}
