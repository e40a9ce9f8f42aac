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

	// nearMemory is the time for which a server counts as near after one fast response, because a near server may be
	// busy for a long time.
	nearMemory = time.Hour
)

// Stats holds statistics about an S3 server. The zero value knows nothing. It is safe for concurrent use.
type Stats struct {
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

// shorter returns the shorter of two durations. 0 means unknown.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Far reports whether the server has sent no fast response in the last hour.
func (s *Stats) Far(now time.Time) bool { return s.Nearest(now) >= FarAway }
