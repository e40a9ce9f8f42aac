package driver

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/babelftp/babelftp/driver/internal/endpoint"
)

// aheadShare is how many parts may be filled ahead of their turn, as one for so many that are under way, and one at least. More would only
// wait in memory: those that are ready go first whenever S3 has answered for a part.
const aheadShare = 4

// crowdRounds is how often the parts of several uploads must be answered before that can be compared, because they tend to come together,
// and crowdTime how long it takes at least: a near server that is busy answers by fits and starts.
const (
	crowdRounds = 2
	crowdTime   = 700 * time.Millisecond
)

// A queue is where the parts of all uploads of a route wait for their turn. One part of each upload may always be under way. How many
// more may be, is decided by a pace that looks at all uploads together, because they share what S3 has to give; they go to whichever
// part has waited longest. The pace goes by what S3 has answered for: that a part was handed to the kernel says little, whose buffers
// hold most of one.
//
// A part is not even filled before its turn is near, so that uploads hold little memory where S3 is slower than their clients.
type queue struct {
	mu      sync.Mutex
	lesson  lesson
	pace    pace // its width is how many parts an upload may have that is alone
	learned time.Time
	waiting []*turn
	uploads int  // that have not ended
	senders int  // those of them that have parts under way
	parts   int  // under way
	ahead   int  // uploads that fill a part, or have, while others of theirs are under way
	most    use  // at a time, since the pace began to watch
	warm    bool // what was answered first, while uploads began, is over

	answered int64         // bytes
	hungry   time.Time     // since when a part waits that is filled; zero while there is none
	waited   time.Duration // before that
}

// A use is how much of a queue is in use.
type use struct{ parts, senders, width int }

// A sender is an upload in a queue.
type sender struct {
	queue *queue
	most  int // parts under way

	// Guarded by the queue's mutex:
	parts int  // under way
	ahead bool // it fills a part, or has, while others are under way
	ended bool
}

// A turn is what a sender waits for.
type turn struct {
	sender *sender
	full   bool          // the part is filled, and waits to be sent
	ready  chan struct{} // closed when it is its turn
}

// sender enters an upload that may have so many parts under way, until close. The guess is how many to begin with.
func (q *queue) sender(most, guess int) *sender {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if q.uploads++; q.uploads == 1 {
		q.begin(now, guess)
	}
	q.correct(now, guess)
	return &sender{queue: q, most: most}
}

// close ends an upload, of which no part is under way. It may be called again.
func (s *sender) close() {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	if q.uploads--; q.uploads == 0 {
		q.pace.end(q.reading(time.Now()))
	}
}

// mayFill waits until a part is worth filling, no longer than both contexts last, and tells whether it is.
func (s *sender) mayFill(ctx, until context.Context) bool {
	return s.queue.wait(ctx, until, &turn{sender: s, ready: make(chan struct{})})
}

// take waits until a part may be sent, no longer than both contexts last, and tells whether it may.
func (s *sender) take(ctx, until context.Context) bool {
	return s.queue.wait(ctx, until, &turn{sender: s, full: true, ready: make(chan struct{})})
}

// leave says that a part which was sent at begin is under way no longer. S3 has answered for so many bytes, 0 where it has not.
func (s *sender) leave(begin time.Time, bytes int64) {
	q := s.queue
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if bytes > 0 {
		if now.Sub(begin) < endpoint.FarAway {
			q.correct(now, 1)
		}
		q.answered += bytes
		q.pace.grain, q.pace.latency = bytes, now.Sub(begin)
		q.look(now)
	}
	q.remove(s)
	q.serve(now)
}

func (s *sender) setAhead(ahead bool) {
	switch {
	case ahead && !s.ahead:
		s.queue.ahead++
	case s.ahead && !ahead:
		s.queue.ahead--
	}
	s.ahead = ahead
}

func (q *queue) wait(ctx, until context.Context, t *turn) bool {
	q.mu.Lock()
	q.waiting = append(q.waiting, t)
	q.serve(time.Now())
	q.mu.Unlock()
	select {
	case <-t.ready:
		return true
	case <-ctx.Done():
	case <-until.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.giveUp(t)
	q.serve(time.Now())
	return false
}

// giveUp ends a turn that nobody waits for any longer. The queue may have granted it meanwhile: then it takes the slot back.
func (q *queue) giveUp(t *turn) {
	i := slices.Index(q.waiting, t)
	switch {
	case i >= 0:
		q.waiting = slices.Delete(q.waiting, i, i+1)
	case t.full:
		q.remove(t.sender)
	}
	t.sender.setAhead(false)
}

// serve lets those go on whose turn it is. Parts that are filled go first.
func (q *queue) serve(now time.Time) {
	hungry := false
	for _, full := range []bool{true, false} {
		q.waiting = slices.DeleteFunc(q.waiting, func(t *turn) bool {
			if t.full != full || !q.admits(t) {
				hungry = hungry || t.full && t.sender.parts < t.sender.most
				return false
			}
			if full {
				q.send(t.sender)
			}
			close(t.ready)
			return true
		})
	}
	switch {
	case hungry && q.hungry.IsZero():
		q.hungry = now
	case !hungry && !q.hungry.IsZero():
		q.waited += now.Sub(q.hungry)
		q.hungry = time.Time{}
	}
}

// admits tells whether it is somebody's turn.
func (q *queue) admits(t *turn) bool {
	s, free := t.sender, 0
	if s.parts < s.most {
		free = max(q.pace.width-q.inUse(), 0)
	}
	switch {
	case s.parts == 0:
		return true
	case t.full:
		return free > 0
	case q.ahead < free+max(q.parts/aheadShare, 1):
		s.setAhead(true)
		return true
	}
	return false
}

// inUse is how much of the pace's width is in use.
func (q *queue) inUse() int { return q.parts - q.senders + 1 }

// use notes what is in use.
func (q *queue) use() {
	q.most.parts = max(q.most.parts, q.parts)
	q.most.senders = max(q.most.senders, q.senders)
	q.most.width = max(q.most.width, q.inUse())
}

// send enters a part of a sender.
func (q *queue) send(s *sender) {
	if s.parts == 0 {
		q.senders++
	}
	s.parts++
	q.parts++
	s.setAhead(false)
	q.use()
}

// remove takes a part of a sender out.
func (q *queue) remove(s *sender) {
	s.parts--
	q.parts--
	if s.parts == 0 {
		q.senders--
		s.setAhead(false)
	}
}

// begin begins to watch. What was learned long ago is learned again.
func (q *queue) begin(now time.Time, guess int) {
	q.pace.lesson, q.pace.most = &q.lesson, math.MaxInt
	if q.pace.width == 0 || now.Sub(q.learned) > endpoint.MaxBackoff {
		q.lesson = lesson{}
		q.start(now, guess)
	} else {
		q.pace.watch(q.reading(now))
	}
	q.most, q.warm = use{}, false
	q.use()
}

// start begins to learn, with the width of a guess.
func (q *queue) start(now time.Time, guess int) {
	q.pace.start(q.reading(now))
	q.pace.width, q.learned = q.lesson.guess(guess), now
}

// correct begins anew with less than was guessed, where a server that seemed far away was only busy.
func (q *queue) correct(now time.Time, guess int) {
	if q.lesson.isGuess() && guess < q.lesson.width {
		q.start(now, guess)
	}
}

// look lets the pace decide how many parts there shall be.
func (q *queue) look(now time.Time) {
	r := q.reading(now)
	from, width := q.pace.from, q.pace.width
	q.pace.single = q.most.senders == 1
	switch {
	case !q.warm && !q.pace.single:
		if r.own-from.own >= r.least {
			q.warm = true
			q.pace.watch(r)
		}
	case width > 1 && q.pace.trial == nil && now.Sub(q.learned) > endpoint.MaxBackoff:
		q.pace.start(r)
	default:
		q.pace.look(r)
	}
	if q.pace.width > width {
		q.learned = now
	}
	if q.pace.from.at != from.at {
		q.most = use{}
		q.use()
	}
}

// reading is what is known of all uploads together.
//
// What is tried next is growth times as many parts for one upload, and half as many again for all: less could not show.
func (q *queue) reading(now time.Time) reading {
	r := reading{at: now, waited: q.waited, own: q.answered, all: q.answered, streams: q.most.width + 1} // one is being filled
	if !q.hungry.IsZero() {
		r.waited += now.Sub(q.hungry)
	}
	parts, rounds := min(q.most.parts, q.most.senders-1+q.pace.width), 1
	if q.most.senders > 1 {
		rounds, r.apart = crowdRounds, crowdTime
	}
	r.least = int64(rounds*parts) * q.pace.grain
	r.wider = q.pace.width + max((growth-1)*parts/max(q.most.senders, 1), (parts+1)/2)
	return r
}
