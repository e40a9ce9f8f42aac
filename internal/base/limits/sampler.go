package limits

import (
	"sync"
	"time"
)

// sampleEvery is the time in which a [Sampler] passes one event of a key.
const sampleEvery = time.Minute

// A Sampler keeps a flood of events K out of the log. It forgets keys without events. The zero value is ready.
type Sampler[K comparable] struct {
	mu    sync.Mutex
	byKey *Expiring[K, *sample]
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
		s.byKey = NewExpiring[K]((*sample).over)
	}
	last := s.byKey.Get(key)
	if last != nil && !last.over() {
		last.missing++
		return 0, false
	}
	if last != nil {
		missing = last.missing
	}
	s.byKey.Set(key, &sample{at: time.Now()})
	return missing, true
}

// over tells whether the minute of an event has passed.
func (s *sample) over() bool { return time.Since(s.at) >= sampleEvery }
