package limits

import (
	"sync"
	"time"
)

// sampleEvery is the period of a [Sampler].
const sampleEvery = time.Minute

// A Sampler keeps a flood of similar events out of the log: it passes only the first events of each key in a minute.
// The zero value is ready to use. It is safe for concurrent use.
type Sampler[K comparable] struct {
	mu    sync.Mutex
	byKey *Expiring[K, *sample]
}

// A sample counts the events of a key in one period.
type sample struct {
	at              time.Time // time of the first event
	passed, dropped int
}

// Pass reports whether an event is the first of its key in a minute, and how many events were dropped before it.
func (s *Sampler[K]) Pass(key K) (dropped int, ok bool) { return s.PassSome(key, 1) }

// PassSome reports whether an event is among the first n of its key in a minute. For the first event of a minute, it
// also returns how many events were dropped before it.
func (s *Sampler[K]) PassSome(key K, n int) (dropped int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = NewExpiring[K]((*sample).expired)
	}
	last := s.byKey.Get(key)
	if last != nil && !last.expired() {
		if last.passed < n {
			last.passed++
			return 0, true
		}
		last.dropped++
		return 0, false
	}
	if last != nil {
		dropped = last.dropped
	}
	s.byKey.Set(key, &sample{at: time.Now(), passed: 1})
	return dropped, true
}

// expired reports whether the period of the sample has ended.
func (s *sample) expired() bool { return time.Since(s.at) >= sampleEvery }
