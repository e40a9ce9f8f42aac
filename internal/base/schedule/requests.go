package schedule

import (
	"context"
	"math"
	"sync"
	"time"
)

const (
	// oneEach is the minimum number of slots: one request of each of two users.
	oneEach = 2

	// minPace is the minimum pace. Next to one other user, a user with many requests then uses a quarter of the time.
	// The other user is also delayed by the processor time that these requests need on this machine.
	minPace = 0.5

	// tolerance is the slowness above which the pace shrinks.
	tolerance = 1.3

	// growth is the number of responses after which the pace grows by one.
	growth = 10

	// inertia determines the moving averages: the last response has a weight of 1/inertia.
	inertia = 8

	// maxPause is the maximum pause of a user, and the time for which the pace does not grow after it shrank.
	maxPause = 100 * time.Millisecond

	// activeFor is the time after a request of another user for which the server counts as shared.
	activeFor = time.Second

	// maxTurn is the maximum length of a turn. A longer request, such as the copy of a large object, continues without
	// a slot.
	maxTurn = time.Second

	// maxReading is the maximum length of a turn while others wait, if the caller reads the body of a response without
	// a pause. It prevents a large object from blocking others.
	maxReading = 20 * time.Millisecond

	// maxReadingPause is the maximum time between two reads of the body in one turn.
	maxReadingPause = time.Millisecond
)

// A Kind is a class of requests that take about the same time on an idle server.
type Kind struct {
	Operation string
	Size      int // bit length of the number of bytes or entries
}

// Requests schedules the requests to a server. It is safe for concurrent use.
type Requests struct {
	far   func(time.Time) bool
	queue *Queue

	mu       sync.Mutex
	pace     float64          // number of slots while several users share the server
	shrunkAt time.Time        // when the pace last shrank
	idle     map[Kind]float64 // response time on an idle server, in seconds
	slowness float64          // response times of light users, divided by the times of an idle server

	lastUser Key       // user of the last request
	lastAt   time.Time // when the last request was made
	sharedAt time.Time // when another user than lastUser last made a request
}

// NewRequests returns a scheduler for a server. far reports whether the server is far away.
func NewRequests(far func(time.Time) bool) *Requests {
	return &Requests{far: far, queue: NewQueue(math.MaxInt, 1), pace: oneEach, idle: make(map[Kind]float64)}
}

// A User is a user who makes requests.
type User struct {
	requests *Requests
	key      Key
}

// For returns the user of a tenant.
func (r *Requests) For(tenant, user string) *User { return &User{r, Key{Group: tenant, Member: user}} }

// A Turn is a request in flight that has a slot. The caller must end it.
type Turn struct {
	requests *Requests
	slot     *Slot
	begin    time.Time
	timeout  *time.Timer // ends the turn

	mu    sync.Mutex
	ended bool
}

// Begin waits until the user may send a request. If ctx ends first, it returns the error of ctx.
func (u *User) Begin(ctx context.Context) (*Turn, error) {
	r := u.requests
	r.recordUser(u.key)
	slot, err := r.queue.Acquire(ctx, u.key)
	if err != nil {
		return nil, err
	}
	t := &Turn{requests: r, slot: slot, begin: time.Now()}
	t.timeout = time.AfterFunc(maxTurn, t.end)
	return t, nil
}

// recordUser records a request of a user.
func (r *Requests) recordUser(user Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if user != r.lastUser {
		r.lastUser, r.sharedAt = user, r.lastAt
	}
	r.lastAt = time.Now()
	r.resize(r.lastAt)
}

// isShared reports whether several users have recently made requests.
func (r *Requests) isShared(now time.Time) bool { return now.Sub(r.sharedAt) < activeFor }

// resize sets the number of slots. It is unlimited for a single user and for distant servers.
func (r *Requests) resize(now time.Time) {
	slots := math.MaxInt
	if r.isShared(now) && !r.far(now) {
		slots = max(oneEach, int(r.pace))
	}
	r.queue.Resize(slots)
}

// Responded must be called when the response to the request begins, unless it is an error. It adjusts the pace.
func (t *Turn) Responded(kind Kind) {
	r, now, load := t.requests, time.Now(), t.slot.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	took := now.Sub(t.begin).Seconds()
	isLight := r.isShared(now) && load.Few && !t.slot.Waited
	idle := r.measure(kind, took, t.slot.Others == 0 && load.Used <= 1)
	switch {
	case isLight && idle == 0: // slow down so that an idle server can be measured
		r.pace = minPace
	case isLight:
		r.slowness += (took/idle - r.slowness) / inertia
		if r.slowness > tolerance && t.begin.After(r.shrunkAt) { // an older request says nothing about the current pace
			r.pace, r.shrunkAt = max(r.pace*tolerance/r.slowness, minPace), now
		}
	case r.isShared(now) && load.Waiting > 0 && now.Sub(r.shrunkAt) > maxPause:
		r.pace += 1. / growth
	}
	r.resize(now)
}

// measure updates and returns the response time of an idle server for a kind of request, or 0 if it is unknown. took is
// the time of the current request, and wasIdle reports whether it was the only one. A shorter time counts immediately,
// even next to other requests. A longer time counts gradually, because this machine may have been busy.
func (r *Requests) measure(kind Kind, took float64, wasIdle bool) float64 {
	idle := r.idle[kind]
	switch {
	case idle == 0 && wasIdle, took < idle:
		idle = took
	case wasIdle:
		idle += (took - idle) / inertia
	}
	if idle > 0 {
		r.idle[kind] = idle
	}
	return idle
}

// Pause must be called after the caller has read bytes of the response. The turn ends soon unless Resume is called.
func (t *Turn) Pause() { t.timeout.Reset(maxReadingPause) }

// Resume must be called before the caller reads more bytes of the response. It returns false if the turn has ended,
// because of its length or because others wait.
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

// End ends the turn, so that the next request may begin. It may be called more than once.
func (t *Turn) End() {
	t.timeout.Stop()
	t.end()
}

func (t *Turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.ended = true
		t.slot.ReleaseAndPause(t.requests.pauseAfter(t))
	}
}

// pauseAfter returns the pause of the user after a turn that ends now.
func (r *Requests) pauseAfter(t *Turn) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.resize(now)
	if !r.isShared(now) || r.pace >= oneEach || t.slot.Load().Few {
		return 0
	}
	return min(time.Duration(float64(now.Sub(t.begin))*(oneEach/r.pace-1)), maxPause)
}
