package upload

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/base/schedule"
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

// A Limiter decides how many parts of uploads an endpoint gets in parallel, and which upload sends the next one. It is
// safe for concurrent use.
//
// Each [Transfer] always has one part under way, and the limit is for those besides. Transfers wait for them by
// [Transfer.Acquire], in a queue in which turns go round.
//
// The limit follows TCP Vegas (Brakmo, O'Malley and Peterson, SIGCOMM 1994). The shortest time that a part has taken
// shows how fast the server is without a queue. A longer time shows how many parts wait in the server. With few, the
// limit grows by one for each part that is answered; with many, it shrinks. It begins with the maximum before a
// distant server, where a few parts take as long as a hundred megabytes.
type Limiter struct {
	stats *s3api.Stats
	parts *schedule.Queue // has a slot for each part under way
	ahead *schedule.Queue // has a slot for each part that is filled, or being filled, next to others of its transfer

	mu sync.Mutex
	// limit is how many parts a transfer may have which is alone. It began with the maximum if the server was distant.
	limit   int
	began   time.Time
	distant bool

	// shortest is the shortest time of a part since then, in seconds for each byte. It is 0 before the first one.
	shortest float64

	joined int // transfers so far
	active int // transfers that have parts under way
	used   int // parts under way
}

// NewLimiter returns a limiter of the parts that are sent to an endpoint.
func NewLimiter(stats *s3api.Stats) *Limiter {
	return &Limiter{stats: stats, parts: schedule.NewQueue(1, 1), ahead: schedule.NewQueue(1, 0)}
}

// Join enters an upload that may have so many parts under way.
func (l *Limiter) Join(most int) *Transfer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.limit == 0 || now.Sub(l.began) > maxAge {
		l.begin(now, most)
		l.resize()
	}
	l.joined++
	return &Transfer{
		limiter: l, key: schedule.Key{Group: strconv.Itoa(l.joined)}, most: most, room: make(chan struct{}, most)}
}

// A Transfer is an upload. Only one goroutine may wait for its parts.
type Transfer struct {
	limiter *Limiter
	key     schedule.Key
	most    int
	room    chan struct{} // holds a value for each part under way

	// Guarded by the limiter's mutex:
	slots []*schedule.Slot // of the parts under way
	ahead *schedule.Slot   // of a part that is filled, or being filled, nil for none
	idle  func()           // ends the wait for such a slot: no part is under way any more
}

// WaitToFill waits until the next part is worth filling, because its turn is near. It returns false when one of the
// contexts ends first.
func (t *Transfer) WaitToFill(ctx, until context.Context) bool {
	both, cancel := either(ctx, until)
	defer cancel()
	wait, idle := context.WithCancel(both)
	defer idle()
	l := t.limiter
	l.mu.Lock()
	t.leaveAhead()
	if t.idle = idle; len(t.slots) == 0 {
		idle()
	}
	l.mu.Unlock()
	slot, err := l.ahead.Enter(wait, t.key)
	l.mu.Lock()
	defer l.mu.Unlock()
	t.idle = nil
	if err == nil {
		t.ahead = slot
	}
	if len(t.slots) == 0 || both.Err() != nil {
		t.leaveAhead()
	}
	return both.Err() == nil
}

// Acquire waits until a part may be sent. It returns false when one of the contexts ends first.
func (t *Transfer) Acquire(ctx, until context.Context) bool {
	both, cancel := either(ctx, until)
	defer cancel()
	l := t.limiter
	var slot *schedule.Slot
	err := both.Err()
	if err == nil {
		select {
		case t.room <- struct{}{}:
			if slot, err = l.parts.Enter(both, t.key); err != nil {
				<-t.room
			}
		case <-both.Done():
			err = both.Err()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.leaveAhead()
	if err != nil {
		return false
	}
	if t.slots = append(t.slots, slot); len(t.slots) == 1 {
		l.active++
	}
	l.used++
	l.resize()
	return true
}

// either returns a context that ends with one of two.
func either(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if other.Err() != nil {
		cancel()
	}
	stop := context.AfterFunc(other, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// leaveAhead says that the transfer has sent the part that it had filled, that it will not, or that it has no others
// under way.
func (t *Transfer) leaveAhead() {
	if t.ahead != nil {
		t.ahead.Leave()
		t.ahead = nil
	}
}

// ReleasePart ends a part that was begun at the time begin. The server has stored so many bytes, 0 after an error.
func (t *Transfer) ReleasePart(begin time.Time, bytes int64) {
	l, now := t.limiter, time.Now()
	took := now.Sub(begin)
	if bytes > 0 && took < s3api.FarAway {
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
	last := len(t.slots) - 1
	slot := t.slots[last]
	t.slots = t.slots[:last]
	if l.used--; last == 0 {
		l.active--
		t.leaveAhead()
		if t.idle != nil {
			t.idle()
		}
	}
	l.resize()
	slot.Leave()
	<-t.room
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
	limited := 2*l.used > l.capacity() // as Linux asks in slow start; clients that are slower use less
	switch waiting := float64(l.used) * (1 - l.shortest/took); {
	case waiting < shortQueue && limited:
		l.limit++
	case waiting > longQueue:
		l.limit = max(l.limit-1, 1)
	}
}

// capacity is how many parts the transfers may have. Each has one, and they share what the limit allows besides.
func (l *Limiter) capacity() int { return l.limit - 1 + l.active }

// resize sets the sizes of the queues. One slot more for parts is kept for a transfer that has none.
func (l *Limiter) resize() {
	l.parts.Resize(l.capacity() + 1)
	l.ahead.Resize(max(l.capacity()-l.used, 0) + max(l.used/lookAhead, 1))
}
