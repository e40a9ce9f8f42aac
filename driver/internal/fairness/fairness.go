// Package fairness shares out the requests that a busy S3 server gets at the same time among tenants, and among the
// users of each.
//
// One [Requests] serves all file systems of an endpoint, and each user has a [User] of it. [User.Begin] waits for a
// [Turn], which stands for one request under way.
//
// A user who is alone has no limit. While several users are active, a limit holds for all together. Each tenant has
// an equal share of it, and each user an equal share of the tenant's. A request above the share waits in a queue. The
// next request is of the tenant, and then of the user, whose last turn began longest ago. A user whose share is less
// than one request makes one after another. If the user has more, it rests after each, so that its requests take that
// share of the time. A user who makes few requests compared with the others never waits.
//
// The limit follows how long answers take, compared with answers to requests that were alone. It shrinks when the
// answers to a user who did not wait take a quarter longer (tolerance), because others slow that user down. Answers
// to users who waited may take many times as long (busyTolerance): S3 does most if it always has work. Otherwise the
// limit grows, like that of TCP in congestion avoidance (RFC 5681, section 3.1). Before a distant server there is no
// limit.
package fairness

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/babelftp/babelftp/driver/internal/endpoint"
)

const (
	// tolerance is how many times as long as a request that is alone those of a user may take on average, if the user
	// has not waited for waitCounts.
	tolerance = 1.25

	// busyTolerance is the same for users who have waited.
	busyTolerance = 8

	// lightPart says who makes few requests: a user with less than an equal part of all requests, divided by this. Of
	// two users with as many sessions, one has so few by chance only.
	lightPart = 4

	// minLimit is the smallest limit, in requests. Next to one other user, a user who always has requests then takes
	// a quarter of the time. What these requests cost the processors of this machine delays the other user too,
	// before and after they are at S3.
	minLimit = 0.5

	// firstLimit is the limit before anything is known: one request for each of two users.
	firstLimit = 2

	// busyLimit is the smallest limit that slow answers to users who have waited lead to.
	busyLimit = 64

	// slowGrowth is the limit below which it grows slowly: by one in as many answers.
	slowGrowth = 10

	// waitCounts is how long a user counts as one who has waited, and how long the limit does not grow after it shrank.
	waitCounts = 100 * time.Millisecond

	// maxRest is the longest time that a user rests after a request.
	maxRest = 100 * time.Millisecond

	// activeFor is how long a user stays active, and so has a share, after the last request.
	activeFor = time.Second

	// maxTurn is how long a turn lasts. A request that takes longer, such as the copy of a large object, continues
	// and no longer counts.
	maxTurn = time.Second

	// maxReading is how long a turn lasts, while others wait, if the caller reads the bytes of the answer without a
	// pause. Otherwise the others would wait until a large object ends.
	maxReading = 20 * time.Millisecond

	// maxPause is how long a turn lasts if the caller does not go on to read the bytes of the answer.
	maxPause = time.Millisecond

	// probeEvery is the longest time between two measurements of requests that are alone. After it, a probe lets
	// requests begin one by one until probeSamples of them were measured, and for probeFor at most.
	probeEvery   = time.Minute
	probeSamples = 16
	probeFor     = 250 * time.Millisecond

	// How many values the average time of requests that are alone is of, and the average slowdown of a user. Older
	// ones count less and less.
	aloneValues, slowdownValues = 16, 8
)

// A Kind is what requests have in common that take about the same time when they are alone.
type Kind struct {
	Operation string // of S3
	Size      int    // number of bits of the number of bytes, or of entries
}

// Requests are the requests to an S3 server. They are safe for concurrent use.
type Requests struct {
	stats *endpoint.Stats

	mu       sync.Mutex
	limit    float64
	underWay int
	waiting  int                // number of requests
	tenants  map[string]*tenant // that have active users
	active   int                // number of active users
	idle     list.List          // of *share: active users without requests, the longest idle first
	queue    line[*tenant]      // that have waiting requests, the next first

	shrunk   time.Time        // When the limit became smaller.
	alone    map[Kind]average // Seconds that a request takes when it is alone.
	probed   time.Time        // When such a request was measured last, or a probe began.
	probing  int              // Samples that a running probe still needs.
	probeEnd time.Time        // The latest end of the probe.
}

// New returns the requests to an endpoint.
func New(stats *endpoint.Stats) *Requests {
	return &Requests{stats: stats, limit: firstLimit, tenants: make(map[string]*tenant), alone: make(map[Kind]average)}
}

// A tenant is guarded by the mutex of its requests.
type tenant struct {
	name     string
	users    map[string]*share // active ones
	underWay int
	queue    line[*share]   // of users that have waiting requests, the next first
	place    place[*tenant] // in the queue of the requests, while there are such users
}

// A share is the requests of an active user. It is guarded by the mutex of all requests.
type share struct {
	tenant   *tenant
	name     string
	underWay int
	waiting  []chan struct{} // One for each waiting request, closed when its turn begins.
	place    place[*share]   // In the queue of the tenant, while requests wait.
	waited   time.Time       // When a request had to wait last.
	rest     time.Time       // Until when no request begins, if the share is less than one request.
	slowdown average         // How many times as long answers take as when requests are alone.
	idle     *list.Element   // In the list of idle users; nil while there are requests.
	since    time.Time       // When the user became idle.
}

// An average counts the last values most. The zero value has none.
type average struct {
	value float64
	n     int
}

// add adds a value. The average is of so many values.
func (a *average) add(value float64, of int) {
	a.n = min(a.n+1, of)
	a.value += (value - a.value) / float64(a.n)
}

// A User makes requests.
type User struct {
	requests     *Requests
	tenant, name string
}

// For returns a user of a tenant.
func (r *Requests) For(tenant, user string) *User { return &User{r, tenant, user} }

// A Turn is a request under way. End ends it.
type Turn struct {
	requests *Requests
	share    *share
	begin    time.Time
	alone    bool        // no other request was under way when it began
	timeout  *time.Timer // ends the turn
	ended    bool        // guarded by the mutex of the requests
}

// Begin waits for a turn. The error is that of ctx.
func (u *User) Begin(ctx context.Context) (*Turn, error) {
	r := u.requests
	r.mu.Lock()
	now := time.Now()
	r.expire(now)
	s := r.share(u)
	r.probe(now)
	if begun := r.enter(s, now); begun != nil {
		r.mu.Unlock()
		select {
		case <-begun:
		case <-ctx.Done():
			r.leave(s, begun)
			return nil, ctx.Err()
		}
		r.mu.Lock()
		now = time.Now()
	}
	defer r.mu.Unlock()
	t := &Turn{requests: r, share: s, begin: now, alone: r.underWay == 1}
	t.timeout = time.AfterFunc(maxTurn, t.end)
	return t, nil
}

// Answered says that S3 has begun to answer a request of some kind without an error.
func (t *Turn) Answered(kind Kind) {
	now := time.Now()
	r := t.requests
	r.mu.Lock()
	defer r.mu.Unlock()
	r.observe(t, kind, now.Sub(t.begin).Seconds(), t.alone && r.underWay == 1, now)
}

// Pause says that bytes of the answer have come. The turn ends soon unless Resume is called.
func (t *Turn) Pause() { t.timeout.Reset(maxPause) }

// Resume says that the caller wants more bytes of the answer. It returns false if the turn has ended: by itself, or
// because others wait.
func (t *Turn) Resume() bool {
	t.timeout.Reset(maxTurn)
	r, now := t.requests, time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting > 0 && now.Sub(t.begin) >= maxReading {
		t.release(now)
	}
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
	t.requests.mu.Lock()
	defer t.requests.mu.Unlock()
	t.release(time.Now())
}

// release ends the turn, unless it has ended. The caller holds the mutex.
func (t *Turn) release(now time.Time) {
	if !t.ended {
		t.ended = true
		t.requests.release(t.share, now.Sub(t.begin), now)
	}
}

// release ends a request of a user that took some time, and lets others begin.
func (r *Requests) release(s *share, took time.Duration, now time.Time) {
	r.add(s, -1, now)
	if share := r.shareOf(s); share < 1 && len(s.waiting) > 0 && !r.light(s) {
		rest := min(time.Duration(float64(took)*(1/share-1)), maxRest)
		s.rest = now.Add(rest)
		s.note(now)
		time.AfterFunc(rest, func() { r.rested(s) })
	}
	r.noteIdle(s, now)
	r.expire(now)
	r.probe(now)
	r.serve(now)
}

// share returns the share of a user, who is active from now on.
func (r *Requests) share(u *User) *share {
	t := r.tenants[u.tenant]
	if t == nil {
		t = &tenant{name: u.tenant, users: make(map[string]*share)}
		t.place.who = t
		r.tenants[u.tenant] = t
	}
	s := t.users[u.name]
	if s == nil {
		s = &share{tenant: t, name: u.name}
		s.place.who = s
		t.users[u.name] = s
		t.note()
		r.active++
	}
	if s.idle != nil {
		r.idle.Remove(s.idle)
		s.idle = nil
	}
	return s
}

// noteIdle begins the idle time of a user who has no requests.
func (r *Requests) noteIdle(s *share, now time.Time) {
	if s.underWay == 0 && len(s.waiting) == 0 && s.idle == nil {
		s.since = now
		s.idle = r.idle.PushBack(s)
	}
}

// expire ends the shares of users who have been idle for activeFor.
func (r *Requests) expire(now time.Time) {
	for e := r.idle.Front(); e != nil; e = r.idle.Front() {
		s := e.Value.(*share)
		if now.Sub(s.since) < activeFor {
			return
		}
		r.idle.Remove(e)
		r.active--
		delete(s.tenant.users, s.name)
		s.tenant.note()
		if len(s.tenant.users) == 0 {
			delete(r.tenants, s.tenant.name)
		}
	}
}

// shared tells whether users share the limit.
func (r *Requests) shared() bool { return r.active > 1 }

// shareOf is how many requests a user may make in parallel. Less than one is a share of the time in which it may make
// one.
func (r *Requests) shareOf(s *share) float64 {
	return r.limit / float64(len(r.tenants)*len(s.tenant.users))
}

// light tells whether a user who makes a request makes few compared with the others.
func (r *Requests) light(s *share) bool { return max(1, s.underWay+len(s.waiting)) <= r.few() }

// few is how many requests are few for a user.
func (r *Requests) few() int { return (r.underWay + r.waiting) / (lightPart * r.active) }

// admits tells whether a user may make another request.
func (r *Requests) admits(s *share, now time.Time) bool {
	return s.need(now).within(s.tenant.limits(r.limits(now)))
}

// limits are those of the needs of tenants.
func (r *Requests) limits(now time.Time) need {
	switch {
	case !r.shared(), r.stats.Far(now), r.probing > 0 && r.underWay == 0:
		return need{never - 1, never - 1, never - 1}
	case r.probing > 0:
		return need{-1, -1, -1}
	}
	return need{
		r.few(),
		int(r.limit) / len(r.tenants),
		max(1, int(max(r.limit, firstLimit))/len(r.tenants)) - 1,
	}
}

// need says when a user of the tenant may make a request, by limits of all requests. Its first number is how many
// requests its lightest user makes. The second is what the tenant's share must be for the user who has the fewest
// under way, whatever the others of the tenant have begun while they were alone. The third is how many the tenant has
// under way, if one of its users has none and does not rest.
func (t *tenant) need() need {
	n := t.queue.least()
	if n[1]++; n[2] == 0 {
		n[2] = t.underWay
	}
	n[1] *= len(t.users)
	return n
}

// need says when the user may make a request, by limits of the tenant. The numbers are those of which the tenant has
// the least.
func (s *share) need(now time.Time) need {
	n := need{max(1, s.underWay+len(s.waiting)), s.underWay, never}
	if s.underWay == 0 && !now.Before(s.rest) {
		n[2] = 0
	}
	return n
}

// limits are those of the needs of the tenant's users, by those of tenants.
func (t *tenant) limits(of need) need {
	of[1] = of[1]/len(t.users) - 1
	if t.underWay <= of[2] {
		of[2] = 0
	} else {
		of[2] = -1
	}
	return of
}

// note tells the queues what a user needs, after that has changed.
func (s *share) note(now time.Time) {
	if s.place.taken() {
		s.place.set(s.need(now))
	}
	s.tenant.note()
}

// note tells the queue what a tenant needs, after that has changed.
func (t *tenant) note() {
	if t.place.taken() {
		t.place.set(t.need())
	}
}

// enter begins a request and returns nil, or queues it and returns a channel that is closed when it may begin.
func (r *Requests) enter(s *share, now time.Time) chan struct{} {
	if len(s.waiting) == 0 && r.admits(s, now) {
		r.add(s, 1, now)
		return nil
	}
	s.waited = now
	r.waiting++
	begun := make(chan struct{})
	if s.waiting = append(s.waiting, begun); len(s.waiting) == 1 {
		s.place.join(&s.tenant.queue, s.need(now))
		if t := s.tenant; !t.place.taken() {
			t.place.join(&r.queue, t.need())
		}
	}
	s.note(now)
	return begun
}

// add changes how many requests of a user are under way.
func (r *Requests) add(s *share, n int, now time.Time) {
	s.underWay += n
	s.tenant.underWay += n
	r.underWay += n
	s.note(now)
}

// serve lets waiting requests begin, as many as may. Who may not begin now may not after others have begun either.
func (r *Requests) serve(now time.Time) {
	for s, ok := r.next(now); ok; s, ok = r.next(now) {
		r.begin(s, now)
	}
}

// next returns the first user who may begin a waiting request, of the first tenant that has one. ok is false if there
// is none.
func (r *Requests) next(now time.Time) (s *share, ok bool) {
	limits := r.limits(now)
	t, ok := r.queue.first(limits)
	if !ok {
		return nil, false
	}
	return t.queue.first(t.limits(limits))
}

// begin lets a waiting request of a user begin. The user and its tenant go to the end of their queues.
func (r *Requests) begin(s *share, now time.Time) {
	t, begun := s.tenant, s.waiting[0]
	s.waiting = s.waiting[1:]
	r.waiting--
	s.place.leave()
	t.place.leave()
	if len(s.waiting) > 0 {
		s.place.join(&t.queue, s.need(now))
	}
	if !t.queue.empty() {
		t.place.join(&r.queue, t.need())
	}
	r.add(s, 1, now)
	close(begun)
}

// leave removes a request from the queue, or ends it if its turn has begun at the same moment.
func (r *Requests) leave(s *share, begun chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	i := slices.Index(s.waiting, begun)
	if i < 0 {
		r.release(s, 0, now)
		return
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	r.waiting--
	if len(s.waiting) == 0 {
		s.place.leave()
		if s.tenant.queue.empty() {
			s.tenant.place.leave()
		}
	}
	s.note(now)
	r.noteIdle(s, now)
}

// probe begins or ends a probe, in which requests begin one by one.
func (r *Requests) probe(now time.Time) {
	switch age := now.Sub(r.probed); {
	case !r.shared():
		r.probing = 0
	case age > probeEvery:
		r.probing, r.probed, r.probeEnd = probeSamples, now, now.Add(probeFor)
		for kind, alone := range r.alone {
			alone.n = 1 // what the probe measures counts more
			r.alone[kind] = alone
		}
		time.AfterFunc(probeFor+1, r.wake) // also if no request ends until then
	case r.probing > 0 && now.After(r.probeEnd):
		r.probing = 0
	}
}

// rested ends the rest of a user.
func (r *Requests) rested(s *share) {
	r.mu.Lock()
	s.note(time.Now())
	r.mu.Unlock()
	r.wake()
}

// wake lets requests begin that have waited for a time to end.
func (r *Requests) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.expire(now)
	r.probe(now)
	r.serve(now)
}

// observe changes the limit by how long an answer took, in seconds.
func (r *Requests) observe(t *Turn, kind Kind, took float64, isAlone bool, now time.Time) {
	alone := r.alone[kind]
	if isAlone {
		alone.add(took, aloneValues)
		r.alone[kind] = alone
		r.probed = now
		r.probing = max(0, r.probing-1)
	}
	if alone.n == 0 {
		return
	}
	s := t.share
	s.slowdown.add(took/alone.value, slowdownValues)
	most, least := float64(busyTolerance), float64(busyLimit)
	if r.shared() && len(s.waiting) == 0 && now.Sub(s.waited) > waitCounts {
		most, least = tolerance, minLimit
	}
	switch slower := s.slowdown.value / most; {
	case slower > 1:
		if t.begin.After(r.shrunk) { // an older request tells nothing of the present limit
			r.limit = max(min(least, r.limit), r.limit*max(1/slower, 0.5))
			r.shrunk = now
		}
	case now.Sub(r.shrunk) > waitCounts && (r.waiting > 0 || float64(r.underWay) >= r.limit):
		r.limit += 1 / max(r.limit, slowGrowth)
	}
}
