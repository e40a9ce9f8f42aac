// Package concurrency decides how many parts of uploads an S3 server gets in parallel, and which upload sends the
// next one.
//
// One [Limiter] serves all uploads to an endpoint. Each [Transfer] always has one part under way, and the limit is
// for those besides. Transfers wait for them by [Transfer.Acquire], first come, first served.
//
// The limit follows TCP Vegas (Brakmo, O'Malley and Peterson, SIGCOMM 1994). The shortest time that a part has taken
// shows how fast the server is without a queue. A longer time shows how many parts wait in the server. With few, the
// limit grows by one for each part that is answered; with many, it shrinks. It begins with the maximum before a
// distant server, where a few parts take as long as a hundred megabytes.
package concurrency

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/babelftp/babelftp/driver/internal/endpoint"
)

const (
	// shortQueue and longQueue are how many parts may wait in the server: with fewer the limit grows, with more it
	// shrinks.
	shortQueue = 2
	longQueue  = 6

	// minSample is the size in bytes of the smallest part that is measured. The last part of an upload may be
	// shorter, and then its time is the round trip.
	minSample = 1 << 20

	// maxAge is how long the limiter goes by the shortest time: a server may move, or have been busy.
	maxAge = 5 * time.Minute

	// lookAhead is how many parts under way allow one part to be filled ahead of its turn. More would only wait in
	// memory.
	lookAhead = 4
)

// A Limiter decides how many parts an endpoint gets in parallel. It is safe for concurrent use.
type Limiter struct {
	stats *endpoint.Stats

	mu sync.Mutex
	// limit is how many parts a transfer may have which is alone. It began with the maximum if the server was distant.
	limit   int
	began   time.Time
	distant bool

	// shortest is the shortest time of a part since then, in seconds for each byte. It is 0 before the first one.
	shortest float64

	active int // transfers that have parts under way
	used   int // parts under way
	ahead  int // parts filled, or being filled, of transfers that have parts under way
	queue  []*waiter
}

// A waiter is a transfer that waits for another part.
type waiter struct {
	transfer *Transfer
	filled   bool          // it waits to send a part, and not to fill one
	granted  chan struct{} // closed when it may
}

// New returns a limiter of the parts that are sent to an endpoint.
func New(stats *endpoint.Stats) *Limiter { return &Limiter{stats: stats} }

// Join enters an upload that may have so many parts under way.
func (l *Limiter) Join(most int) *Transfer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.limit == 0 || now.Sub(l.began) > maxAge {
		l.begin(now, most)
	}
	return &Transfer{limiter: l, most: most}
}

// A Transfer is an upload.
type Transfer struct {
	limiter *Limiter
	most    int

	// Guarded by the limiter's mutex:
	used  int
	ahead bool // it fills a part, or has, while others are under way
}

// WaitToFill waits until the next part is worth filling, because its turn is near. It returns false when one of the
// contexts ends first.
func (t *Transfer) WaitToFill(ctx, until context.Context) bool { return t.wait(ctx, until, false) }

// Acquire waits until a part may be sent. It returns false when one of the contexts ends first.
func (t *Transfer) Acquire(ctx, until context.Context) bool { return t.wait(ctx, until, true) }

func (t *Transfer) wait(ctx, until context.Context, filled bool) bool {
	l, w := t.limiter, &waiter{transfer: t, filled: filled, granted: make(chan struct{})}
	l.mu.Lock()
	l.queue = append(l.queue, w)
	l.serve()
	l.mu.Unlock()
	select {
	case <-w.granted:
		return true
	case <-ctx.Done():
	case <-until.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, w); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	} else if filled {
		l.add(t, -1) // it was granted meanwhile
	}
	l.setAhead(t, false)
	l.serve()
	return false
}

// ReleasePart ends a part that was begun at the time begin. The server has stored so many bytes, 0 after an error.
func (t *Transfer) ReleasePart(begin time.Time, bytes int64) {
	l, now := t.limiter, time.Now()
	took := now.Sub(begin)
	if bytes > 0 && took < endpoint.FarAway {
		l.stats.Observe(now, took)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.began) > maxAge || l.distant && !l.stats.Far(now) { // the server seemed distant but was only busy
		l.begin(now, t.most)
	}
	if bytes >= minSample {
		l.adjust(took.Seconds() / float64(bytes))
	}
	l.add(t, -1)
	l.serve()
}

// begin forgets what was measured.
func (l *Limiter) begin(now time.Time, most int) {
	l.limit, l.began, l.distant, l.shortest = 1, now, l.stats.Far(now), 0
	if l.distant {
		l.limit = most
	}
}

// adjust changes the limit by what a part took, in seconds for each byte.
func (l *Limiter) adjust(took float64) {
	if l.shortest == 0 || took < l.shortest {
		l.shortest = took
	}
	limited := 2*l.used > l.capacity(l.active) // as Linux asks in slow start; clients that are slower use less
	switch waiting := float64(l.used) * (1 - l.shortest/took); {
	case waiting < shortQueue && limited:
		l.limit++
	case waiting > longQueue:
		l.limit = max(l.limit-1, 1)
	}
}

// add counts a part that begins or ends.
func (l *Limiter) add(t *Transfer, n int) {
	before := t.used
	t.used += n
	l.used += n
	switch {
	case before == 0:
		l.active++
	case t.used == 0:
		l.active--
	}
	if n > 0 || t.used == 0 {
		l.setAhead(t, false)
	}
}

func (l *Limiter) setAhead(t *Transfer, ahead bool) {
	switch {
	case ahead && !t.ahead:
		l.ahead++
	case t.ahead && !ahead:
		l.ahead--
	}
	t.ahead = ahead
}

// capacity is how many parts so many transfers may have. Each has one, and they share what the limit allows besides.
func (l *Limiter) capacity(transfers int) int { return l.limit - 1 + transfers }

// free is how many more parts a transfer may have now.
func (l *Limiter) free(t *Transfer) int {
	if t.used == 0 {
		return max(min(l.capacity(l.active+1)-l.used, t.most), 1) // also where the limit has just shrunk
	}
	return max(min(l.capacity(l.active)-l.used, t.most-t.used), 0)
}

// serve grants parts to those who have waited longest, and first to filled ones.
func (l *Limiter) serve() {
	for _, filled := range []bool{true, false} {
		l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool {
			t := w.transfer
			free := l.free(t)
			switch {
			case w.filled != filled:
				return false
			case filled && free > 0:
				l.add(t, 1)
			case !filled && t.used == 0:
			case !filled && l.ahead < free+max(l.used/lookAhead, 1):
				l.setAhead(t, true)
			default:
				return false
			}
			close(w.granted)
			return true
		})
	}
}
