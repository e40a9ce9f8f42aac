package limits

import (
	"context"
	"math"
	"sync"
	"time"
)

const (
	// firstDelay is the delay after the first failure. Each further failure doubles it.
	firstDelay = 250 * time.Millisecond
	// scoreHalfLife is the time after which half of the failures are forgotten.
	scoreHalfLife = 5 * time.Minute
	// maxScore is the maximum number of failures of a cause that count. It limits how long they are remembered.
	maxScore = 8
	// forgotten is the score below which a key is removed.
	forgotten = 0.5
	// maxFailing is the maximum number of causes of a key that have a score of their own. Further causes share one.
	maxFailing = 8
	// maxCauses is the maximum number of remembered causes of a key, including those that have succeeded.
	maxCauses = 64
)

// A Throttle delays the attempts of keys that fail repeatedly, longer with each failure. In the server, a key is the
// address of a client, and the cause of a failure is the name of the user. A key waits for the failures of all its
// causes. Failures are forgotten over time. A success forgets the failures of its cause immediately and allows the next
// attempt for this cause without a delay, because other users may share the address.
type Throttle[K, C comparable] struct {
	longest time.Duration

	mu     sync.Mutex
	failed *Expiring[K, *failures[C]]
}

// failures are the failures of a key.
type failures[C comparable] struct {
	causes map[C]*cause
	others cause     // shared by the causes that are not in the map
	last   time.Time // when the last attempt began or failed
}

// A cause contains the failures of a cause.
type cause struct {
	score Score
	free  bool // the next attempt need not wait, because the last one succeeded
}

// NewThrottle returns a Throttle that delays attempts by at most longest. If longest is 0, it delays none.
func NewThrottle[K, C comparable](longest time.Duration) *Throttle[K, C] {
	return &Throttle[K, C]{longest: longest, failed: NewExpiring[K](func(f *failures[C]) bool {
		return f.score(time.Now()) < forgotten
	})}
}

// SetLongest changes the maximum delay. The failures are kept.
func (t *Throttle[K, C]) SetLongest(longest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.longest = longest
}

// Wait waits until a key may make an attempt. Call it before the attempt: if the delay came after a failure instead, a
// client that knows about it could hang up early. Concurrent attempts of a key wait for each other. If ctx ends first,
// Wait returns its error.
func (t *Throttle[K, C]) Wait(ctx context.Context, key K, of C) error {
	return Sleep(ctx, t.reserve(key, of, time.Now()))
}

// reserve returns how long an attempt has to wait. The delay is counted from the beginning or the failure of the last
// attempt.
func (t *Throttle[K, C]) reserve(key K, of C, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.failed.Get(key)
	if f == nil {
		return 0
	}
	if c := f.causes[of]; c != nil && c.free {
		c.free = false
		return 0
	}
	wait := min(max(0, f.last.Add(t.delay(f.score(now))).Sub(now)), t.longest)
	f.last = now.Add(wait)
	return wait
}

// Failed records a failed attempt.
func (t *Throttle[K, C]) Failed(key K, of C) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.failed.Get(key)
	if f == nil {
		f = &failures[C]{causes: make(map[C]*cause)}
		t.failed.Set(key, f)
	}
	c := f.failing(of)
	c.score = c.score.Add(min(1, maxScore-c.score.At(now, scoreHalfLife)), now, scoreHalfLife)
	c.free = false
	if now.After(f.last) { // otherwise a concurrent attempt has a later turn
		f.last = now
	}
}

// failing returns the cause that a failure is counted in. It may be f.others.
func (f *failures[C]) failing(of C) *cause {
	c := f.causes[of]
	if c != nil && c.score != (Score{}) {
		return c
	}
	n := 0
	for _, other := range f.causes {
		if other.score != (Score{}) {
			n++
		}
	}
	switch {
	case n >= maxFailing, c == nil && len(f.causes) >= maxCauses:
		if c != nil {
			c.free = false
		}
		return &f.others
	case c == nil:
		c = &cause{}
		f.causes[of] = c
	}
	return c
}

// Succeeded records a successful attempt and forgets the failures of its cause. The failures of other causes are kept.
func (t *Throttle[K, C]) Succeeded(key K, of C) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.failed.Get(key)
	if f == nil {
		return
	}
	if f.causes[of] != nil || len(f.causes) < maxCauses {
		f.causes[of] = &cause{free: true}
	}
	if f.score(time.Now()) < forgotten {
		t.failed.Delete(key)
	}
}

// score returns the sum of the scores of all causes.
func (f *failures[C]) score(now time.Time) float64 {
	all := f.others.score.At(now, scoreHalfLife)
	for _, c := range f.causes {
		all += c.score.At(now, scoreHalfLife)
	}
	return all
}

// delay returns the time between two attempts of a key with this score.
func (t *Throttle[K, C]) delay(score float64) time.Duration {
	if score < forgotten {
		return 0
	}
	return min(time.Duration(float64(firstDelay)*math.Exp2(min(score, maxScore)-1)), t.longest)
}
