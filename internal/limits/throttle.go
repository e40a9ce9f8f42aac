package limits

import (
	"context"
	"math"
	"sync"
	"time"
)

const (
	// firstDelay is the time between the first failure and the next attempt. Each further failure doubles it.
	firstDelay = 250 * time.Millisecond
	// scoreHalfLife is the time in which half of the failures are forgotten.
	scoreHalfLife = 5 * time.Minute
	// maxScore bounds how many failures count, and so how long they are remembered.
	maxScore = 8
	// forgotten is the score below which a key is removed.
	forgotten = 0.5
	// sweepAt is the least number of keys at which the throttle looks for those to remove.
	sweepAt = 1000
)

// A Throttle makes keys K wait that fail again and again, longer with each failure. Failures
// are forgotten with time, and at once with a success.
type Throttle[K comparable] struct {
	longest time.Duration

	mu      sync.Mutex
	failed  map[K]*failures
	sweepAt int
}

// failures are those of a key.
type failures struct {
	score float64
	at    time.Time // when score was right
	next  time.Time // when another attempt may begin
}

// NewThrottle makes a Throttle in which an attempt waits for the time longest at most; with
// 0 none waits.
func NewThrottle[K comparable](longest time.Duration) *Throttle[K] {
	return &Throttle[K]{longest: longest, failed: make(map[K]*failures), sweepAt: sweepAt}
}

// SetLongest sets the longest wait. The failures stay.
func (t *Throttle[K]) SetLongest(longest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.longest = longest
}

// Wait waits until a key may make an attempt. It comes before the attempt and not after a
// failure, because a client that knows that failures take longer would hang up early.
// Attempts at the same time get one turn after another. The error is that of ctx.
func (t *Throttle[K]) Wait(ctx context.Context, key K) error {
	return Sleep(ctx, t.reserve(key, time.Now()))
}

// reserve returns how long an attempt has to wait, and moves the next one to after it.
func (t *Throttle[K]) reserve(key K, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.failed[key]
	if f == nil {
		return 0
	}
	f.decay(now)
	wait := min(max(0, f.next.Sub(now)), t.longest)
	f.next = now.Add(wait + t.delay(f.score))
	return wait
}

// Failed notes that an attempt has failed.
func (t *Throttle[K]) Failed(key K) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.failed[key]
	if f == nil {
		t.sweep(now)
		f = &failures{at: now}
		t.failed[key] = f
	}
	f.decay(now)
	f.score = min(f.score+1, maxScore)
	if next := now.Add(t.delay(f.score)); next.After(f.next) {
		f.next = next
	}
}

// Succeeded forgets the failures of a key.
func (t *Throttle[K]) Succeeded(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failed, key)
}

// sweep removes the keys whose failures are forgotten, each time when there are twice as many keys.
func (t *Throttle[K]) sweep(now time.Time) {
	if len(t.failed) < t.sweepAt {
		return
	}
	for key, f := range t.failed {
		if f.decay(now); f.score < forgotten {
			delete(t.failed, key)
		}
	}
	t.sweepAt = max(sweepAt, 2*len(t.failed))
}

func (f *failures) decay(now time.Time) {
	f.score *= math.Exp2(-now.Sub(f.at).Seconds() / scoreHalfLife.Seconds())
	f.at = now
}

// delay is the time between two attempts of who has a score.
func (t *Throttle[K]) delay(score float64) time.Duration {
	if score < forgotten {
		return 0
	}
	return min(time.Duration(float64(firstDelay)*math.Exp2(score-1)), t.longest)
}
