package limits

import (
	"encoding/json"
	"iter"
	"maps"
	"math"
	"time"
)

// sweepAt is the minimum number of entries at which an [Expiring] map removes expired entries.
const sweepAt = 1000

// An Expiring map removes expired entries. It does so when a key is added and the map has [sweepAt] entries or twice as
// many as the last sweep left, whichever is more. The amortized cost of an addition is therefore constant. It is not
// safe for concurrent use.
type Expiring[K comparable, V any] struct {
	expired func(V) bool
	entries map[K]V
	sweepAt int
}

// NewExpiring returns an empty map. It may remove the values for which expired returns true.
func NewExpiring[K comparable, V any](expired func(V) bool) *Expiring[K, V] {
	return &Expiring[K, V]{expired: expired, entries: map[K]V{}, sweepAt: sweepAt}
}

// Get returns the value of a key, or the zero value. The value may have expired.
func (m *Expiring[K, V]) Get(key K) V { return m.entries[key] }

// Set sets the value of a key.
func (m *Expiring[K, V]) Set(key K, value V) {
	if _, known := m.entries[key]; !known && len(m.entries) >= m.sweepAt {
		maps.DeleteFunc(m.entries, func(_ K, v V) bool { return m.expired(v) })
		m.sweepAt = max(sweepAt, 2*len(m.entries))
	}
	m.entries[key] = value
}

// Delete removes a key.
func (m *Expiring[K, V]) Delete(key K) { delete(m.entries, key) }

// Len returns the number of entries, including expired ones that have not been removed yet.
func (m *Expiring[K, V]) Len() int { return len(m.entries) }

// All iterates over the entries in no particular order.
func (m *Expiring[K, V]) All() iter.Seq2[K, V] { return maps.All(m.entries) }

// A Score counts the offenses of a client. The points decay exponentially. The zero value has no points.
type Score struct {
	points float64
	at     time.Time // when the score had these points
}

// MarshalJSON returns the points and their time in milliseconds since 1970, as an array.
func (s Score) MarshalJSON() ([]byte, error) {
	return json.Marshal([2]float64{s.points, float64(s.at.UnixMilli())})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Score) UnmarshalJSON(text []byte) error {
	var fields [2]float64
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	*s = Score{fields[0], time.UnixMilli(int64(fields[1]))}
	return nil
}

// At returns the points that are left at the given time.
func (s Score) At(now time.Time, halfLife time.Duration) float64 {
	if s.points == 0 {
		return 0
	}
	return s.points * math.Exp2(-now.Sub(s.at).Seconds()/halfLife.Seconds())
}

// Add returns the score with points added.
func (s Score) Add(points float64, now time.Time, halfLife time.Duration) Score {
	return Score{s.At(now, halfLife) + points, now}
}
