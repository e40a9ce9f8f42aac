package limits

import (
	"sync"
	"time"
)

// sampleEvery is the time in which a [Sampler] passes one event of a key.
const sampleEvery = time.Minute

// A Sampler keeps a flood of events K out of the log. It forgets keys without events. The zero value is ready.
type Sampler[K comparable] struct {
	mu      sync.Mutex
	byKey   map[K]*sample
	sweepAt int
}

// A sample is when the last event was passed, and how many came since.
type sample struct {
	at      time.Time
	missing int
}

// Pass tells whether an event is the first of its key in a minute, and how many were not passed before it.
func (s *Sampler[K]) Pass(key K) (missing int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = make(map[K]*sample)
	}
	last := s.byKey[key]
	if last != nil && time.Since(last.at) < sampleEvery {
		last.missing++
		return 0, false
	}
	if last != nil {
		missing = last.missing
	} else {
		s.sweep()
	}
	s.byKey[key] = &sample{at: time.Now()}
	return missing, true
}

// sweep removes keys that had no event for a minute, each time when there are twice as many.
func (s *Sampler[K]) sweep() {
	if len(s.byKey) < max(s.sweepAt, sweepAt) {
		return
	}
	for key, last := range s.byKey {
		if time.Since(last.at) >= sampleEvery {
			delete(s.byKey, key)
		}
	}
	s.sweepAt = 2 * len(s.byKey)
}
