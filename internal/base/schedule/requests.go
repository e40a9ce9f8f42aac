package schedule

import (
	"context"
	"math"
	"sync"
	"time"
)

const (
	// oneEach is the number of slots with which one request of each of two users is under way. There are no fewer.
	oneEach = 2

	// leastPace is the smallest pace. Next to one other user, a user who always has requests then takes a quarter of
	// the time. What these requests cost the processors of this machine delays the other user too, before and after
	// they are at the server.
	leastPace = 0.5

	// tolerance is how many times as long as a request that is alone those may take that must not be slow.
	tolerance = 1.3

	// growth is how many answers make room for one more request.
	growth = 10

	// inertia is the part, as one of so many, that the last answer has in an average.
	inertia = 8

	// pause is the longest rest of a user, and how long the pace does not grow after it shrank.
	pause = 100 * time.Millisecond

	// activeFor is how long after a request of another user the server counts as shared.
	activeFor = time.Second

	// maxTurn is how long a turn lasts. A request that takes longer, such as the copy of a large object, continues
	// and no longer counts.
	maxTurn = time.Second

	// maxReading is how long a turn lasts, while others wait, if the caller reads the bytes of the answer without a
	// pause. Otherwise the others would wait until a large object ends.
	maxReading = 20 * time.Millisecond

	// maxPause is how long a turn lasts if the caller does not go on to read the bytes of the answer.
	maxPause = time.Millisecond
)

// A Kind is what requests have in common that take about the same time when they are alone.
type Kind struct {
	Operation string
	Size      int // number of bits of the number of bytes, or of entries
}

// Requests are the requests to a server. They are safe for concurrent use.
type Requests struct {
	far   func(time.Time) bool
	queue *Queue

	mu       sync.Mutex
	pace     float64          // number of slots while users share the server
	shrunk   time.Time        // when the pace shrank
	alone    map[Kind]float64 // seconds that a request takes when it is alone
	slowness float64          // how many times as long those of light users take

	last   Key       // who made the last request
	when   time.Time // that was
	others time.Time // when another user made one before
}

// NewRequests returns the requests to a server. A function tells whether it is distant.
func NewRequests(far func(time.Time) bool) *Requests {
	return &Requests{far: far, queue: NewQueue(math.MaxInt, 1), pace: oneEach, alone: make(map[Kind]float64)}
}

// A User makes requests.
type User struct {
	requests *Requests
	key      Key
}

// For returns a user of a tenant.
func (r *Requests) For(tenant, user string) *User { return &User{r, Key{Group: tenant, Member: user}} }

// A Turn is a request under way. End ends it.
type Turn struct {
	requests *Requests
	slot     *Slot
	begin    time.Time
	timeout  *time.Timer // ends the turn

	mu    sync.Mutex
	ended bool
}

// Begin waits for a turn. The error is that of ctx.
func (u *User) Begin(ctx context.Context) (*Turn, error) {
	r := u.requests
	r.note(u.key)
	slot, err := r.queue.Enter(ctx, u.key)
	if err != nil {
		return nil, err
	}
	t := &Turn{requests: r, slot: slot, begin: time.Now()}
	t.timeout = time.AfterFunc(maxTurn, t.end)
	return t, nil
}

// note notes who makes a request.
func (r *Requests) note(user Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if user != r.last {
		r.last, r.others = user, r.when
	}
	r.when = time.Now()
	r.resize(r.when)
}

// shared tells whether several users make requests.
func (r *Requests) shared(now time.Time) bool { return now.Sub(r.others) < activeFor }

// resize sets the number of slots. A user who is alone has no limit, and neither have users of a distant server.
func (r *Requests) resize(now time.Time) {
	slots := math.MaxInt
	if r.shared(now) && !r.far(now) {
		slots = max(oneEach, int(r.pace))
	}
	r.queue.Resize(slots)
}

// Answered says that the server has begun to answer a request of some kind without an error.
func (t *Turn) Answered(kind Kind) {
	r, now, load := t.requests, time.Now(), t.slot.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	took := now.Sub(t.begin).Seconds()
	light := r.shared(now) && load.Few && !t.slot.Waited
	alone := r.measure(kind, took, t.slot.Others == 0 && load.Used <= 1)
	switch {
	case light && alone == 0: // so that it will be known
		r.pace = leastPace
	case light:
		r.slowness += (took/alone - r.slowness) / inertia
		if r.slowness > tolerance && t.begin.After(r.shrunk) { // an older request tells nothing of the present pace
			r.pace, r.shrunk = max(r.pace*tolerance/r.slowness, leastPace), now
		}
	case r.shared(now) && load.Waiting > 0 && now.Sub(r.shrunk) > pause:
		r.pace += 1. / growth
	}
	r.resize(now)
}

// measure returns how long a request of a kind takes when it is alone, after one has taken some time. It is 0 where
// nothing is known. A shorter time counts at once, also next to others, and a longer one little by little: this
// machine may have been busy.
func (r *Requests) measure(kind Kind, took float64, isAlone bool) float64 {
	alone := r.alone[kind]
	switch {
	case alone == 0 && isAlone, took < alone:
		alone = took
	case isAlone:
		alone += (took - alone) / inertia
	}
	if alone > 0 {
		r.alone[kind] = alone
	}
	return alone
}

// Pause says that bytes of the answer have come. The turn ends soon unless Resume is called.
func (t *Turn) Pause() { t.timeout.Reset(maxPause) }

// Resume says that the caller wants more bytes of the answer. It returns false if the turn has ended: by itself, or
// because others wait.
func (t *Turn) Resume() bool {
	t.timeout.Reset(maxTurn)
	if time.Since(t.begin) >= maxReading && t.requests.queue.Waiting() > 0 {
		t.end()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		t.timeout.Stop()
	}
	return !t.ended
}

// End gives the turn to the next request. It may be called again.
func (t *Turn) End() {
	t.timeout.Stop()
	t.end()
}

func (t *Turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.ended = true
		t.slot.LeaveAndRest(t.requests.restAfter(t))
	}
}

// restAfter is how long the user of a turn rests that ends now.
func (r *Requests) restAfter(t *Turn) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.resize(now)
	if !r.shared(now) || r.pace >= oneEach || t.slot.Load().Few {
		return 0
	}
	return min(time.Duration(float64(now.Sub(t.begin))*(oneEach/r.pace-1)), pause)
}
