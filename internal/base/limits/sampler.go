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

// A sample holds the time of the first event of a minute, and how many events have passed and have been dropped.
type sample struct {
	at              time.Time
	passed, missing int
}

// Pass reports whether an event is the first of its key in a minute, and how many events were dropped before it.
func (s *Sampler[K]) Pass(key K) (missing int, ok bool) { return s.PassSome(key, 1) }

// PassSome reports whether an event is among the first n of its key in a minute, and for the first one how many events
// were dropped before it.
func (s *Sampler[K]) PassSome(key K, n int) (missing int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = NewExpiring[K]((*sample).over)
	}
	last := s.byKey.Get(key)
	if last != nil && !last.over() {
		if last.passed < n {
			last.passed++
			return 0, true
		}
		last.missing++
		return 0, false
	}
	if last != nil {
		missing = last.missing
	}
	s.byKey.Set(key, &sample{at: time.Now(), passed: 1})
	return missing, true
}

// over reports whether the minute of an event has passed.
func (s *sample) over() bool { return time.Since(s.at) >= sampleEvery }
