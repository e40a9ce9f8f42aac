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
	// maxScore bounds how many failures of a cause count, and so how long they are remembered.
	maxScore = 8
	// forgotten is the score below which a key is removed.
	forgotten = 0.5
	// maxFailing is how many causes of a key have failures of their own. The failures of further causes count together.
	maxFailing = 8
	// maxCauses is how many causes of a key are remembered, with those that have succeeded.
	maxCauses = 64
)

// A Throttle makes keys K wait that fail again and again, longer with each failure. Failures have a cause C: a key
// that guesses at several causes waits for all of them. Failures are forgotten with time. A success forgets at once
// those of its own cause, and lets the next attempt for this cause begin without a wait, because others may share the
// key.
type Throttle[K, C comparable] struct {
	longest time.Duration

	mu     sync.Mutex
	failed *Expiring[K, *failures[C]]
}

// failures are those of a key.
type failures[C comparable] struct {
	causes map[C]*cause
	others cause     // the failures of causes that are not remembered
	last   time.Time // when the last attempt began or failed
}

// A cause has the failures of a cause.
type cause struct {
	score Score
	free  bool // whether the next attempt waits for nothing, after a success
}

// NewThrottle makes a Throttle in which an attempt waits for the time longest at most; with
// 0 none waits.
func NewThrottle[K, C comparable](longest time.Duration) *Throttle[K, C] {
	return &Throttle[K, C]{longest: longest, failed: NewExpiring[K](func(f *failures[C]) bool {
		return f.score(time.Now()) < forgotten
	})}
}

// SetLongest sets the longest wait. The failures stay.
func (t *Throttle[K, C]) SetLongest(longest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.longest = longest
}

// Wait waits until a key may make an attempt. It comes before the attempt and not after a
// failure, because a client that knows that failures take longer would hang up early.
// Attempts at the same time get one turn after another. The error is that of ctx.
func (t *Throttle[K, C]) Wait(ctx context.Context, key K, of C) error {
	return Sleep(ctx, t.reserve(key, of, time.Now()))
}

// reserve returns how long an attempt has to wait: it begins no sooner than the delay for the failures after the last
// attempt began, or failed.
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

// Failed notes that an attempt has failed.
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
	if now.After(f.last) { // attempts at the same time have begun, or wait, until later
		f.last = now
	}
}

// failing is the cause of a failure, or what counts in its place.
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

// Succeeded forgets the failures of a cause of a key. The key waits for its other failures.
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

// score is that of all causes.
func (f *failures[C]) score(now time.Time) float64 {
	all := f.others.score.At(now, scoreHalfLife)
	for _, c := range f.causes {
		all += c.score.At(now, scoreHalfLife)
	}
	return all
}

// delay is the time between two attempts at a score.
func (t *Throttle[K, C]) delay(score float64) time.Duration {
	if score < forgotten {
		return 0
	}
	return min(time.Duration(float64(firstDelay)*math.Exp2(min(score, maxScore)-1)), t.longest)
}
