package limits

import (
	"iter"
	"maps"
	"math"
	"time"
)

// sweepAt is the least number of entries at which an [Expiring] map looks for those to forget.
const sweepAt = 1000

// An Expiring map forgets entries that are over. It looks for them when it has [sweepAt] entries, and then each time
// when it has twice as many as the last look has left. So what an entry costs does not grow with their number. It is
// not safe for concurrent use.
type Expiring[K comparable, V any] struct {
	over    func(V) bool
	entries map[K]V
	sweepAt int
}

// NewExpiring makes an empty map. The function over says of a value whether the map may forget it.
func NewExpiring[K comparable, V any](over func(V) bool) *Expiring[K, V] {
	return &Expiring[K, V]{over: over, entries: map[K]V{}, sweepAt: sweepAt}
}

// Get returns the value of a key, or the zero value. It may be over already.
func (m *Expiring[K, V]) Get(key K) V { return m.entries[key] }

// Set gives a key a value.
func (m *Expiring[K, V]) Set(key K, value V) {
	if _, known := m.entries[key]; !known && len(m.entries) >= m.sweepAt {
		maps.DeleteFunc(m.entries, func(_ K, v V) bool { return m.over(v) })
		m.sweepAt = max(sweepAt, 2*len(m.entries))
	}
	m.entries[key] = value
}

// Delete forgets a key.
func (m *Expiring[K, V]) Delete(key K) { delete(m.entries, key) }

// Len is how many entries there are, with those that are over and not yet forgotten.
func (m *Expiring[K, V]) Len() int { return len(m.entries) }

// All are the entries, in no order.
func (m *Expiring[K, V]) All() iter.Seq2[K, V] { return maps.All(m.entries) }

// A Score counts what clients do wrong, and forgets half of it in each half-life. The zero value has no points.
type Score struct {
	points float64
	at     time.Time // when that was right
}

// At is how many points are left.
func (s Score) At(now time.Time, halfLife time.Duration) float64 {
	if s.points == 0 {
		return 0
	}
	return s.points * math.Exp2(-now.Sub(s.at).Seconds()/halfLife.Seconds())
}

// Add returns the score with more points.
func (s Score) Add(points float64, now time.Time, halfLife time.Duration) Score {
	return Score{s.At(now, halfLife) + points, now}
}
