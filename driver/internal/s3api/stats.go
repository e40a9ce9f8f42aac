package s3api

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// FarAway is the shortest response time of a distant server. A nearby server that responds more slowly is busy, and
	// several requests in parallel would not be faster.
	FarAway = 20 * time.Millisecond

	// SlowPage is the time per page of a listing above which splitting listings may be faster.
	SlowPage = 40 * time.Millisecond

	// splitGain is how many times faster a split listing must be.
	splitGain = 1.5

	// splitBackoff is how long no listing is split after splitting was not faster, because the server may have been
	// busy.
	splitBackoff = time.Minute

	// recent limits how long the time of a page is remembered: a server may move, or may have been busy.
	recent = time.Minute

	// nearMemory is how long a server counts as near after one fast response, because a near server may be busy for a
	// long time.
	nearMemory = time.Hour

	// pageInertia is the smoothing factor: a longer page time counts with 1/pageInertia.
	pageInertia = 8
)

// Stats holds statistics about an S3 server. The zero value knows nothing. It is safe for concurrent use.
type Stats struct {
	Pages PageTimes

	mu       sync.Mutex
	shortest [2]time.Duration // shortest response times in the current and the previous hour; 0 if there was none
	since    time.Time        // start of the current hour

	metadata atomic.Bool // an object has been returned with the metadata it was stored with
}

// Observe records how long it took until a response began.
func (s *Stats) Observe(now time.Time, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if age := now.Sub(s.since); age > nearMemory {
		if age > 2*nearMemory {
			s.shortest[0] = 0
		}
		s.shortest = [2]time.Duration{0, s.shortest[0]}
		s.since = now
	}
	s.shortest[0] = shorter(s.shortest[0], took)
}

// Nearest returns the shortest response time of the last hour or two, or 0 if there was no response.
func (s *Stats) Nearest(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.since) > 2*nearMemory {
		return 0
	}
	return shorter(s.shortest[0], s.shortest[1])
}

// shorter returns the shorter of two durations. 0 means that there is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Far reports whether the server has sent no fast response in the last hour.
func (s *Stats) Far(now time.Time) bool { return s.Nearest(now) >= FarAway }

// SplitsListings reports whether splitting a listing may make it faster. It also returns true for a server about which
// nothing is known yet: [PageTimes.Gains] shows after the first attempt whether splitting helps.
func (s *Stats) SplitsListings(now time.Time) bool {
	return (s.Far(now) || s.Nearest(now) == 0) && s.Pages.slow(now)
}

// PageTimes measures how long S3 takes for a page of a listing, if no other request of that listing is in flight. It
// also records whether splitting slow listings was faster.
type PageTimes struct {
	mu       sync.Mutex
	took     time.Duration
	observed time.Time // when the last page was measured
	until    time.Time // end of the backoff
}

// Observe records how long a page took. A shorter time counts at once and a longer one only gradually, because the
// server may have been busy.
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

// slow reports whether pages take so long that splitting a listing may be faster.
func (p *PageTimes) slow(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took >= SlowPage && now.Before(p.observed.Add(recent)) && !now.Before(p.until)
}

// BacksOff reports whether listings must not be split at the moment.
func (p *PageTimes) BacksOff(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Before(p.until)
}

// Gains reports whether splitting a listing was faster, given the average time for each of its pages. If not, it starts
// the backoff.
func (p *PageTimes) Gains(now time.Time, each time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if float64(p.took) >= splitGain*float64(each) {
		return true
	}
	p.until = now.Add(splitBackoff)
	return false
}
