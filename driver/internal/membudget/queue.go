package membudget

import (
	"cmp"
	"container/heap"
	"container/list"
)

// A queue is the buffers that wait. The first is of the group that holds least, and of the member of it that holds
// least. Among those it is the one that came first.
//
// Buffers of a kind get the same answer from a pool, and later in the same round no better one. So a round asks each
// pool once for each kind, and not for each buffer. Turns form a tree: of all, of each kind, of each group in it, and
// of each of its members. A turn keeps those below in a heap, so that only those are put in order again whose members
// or groups hold something else than before.
type queue struct {
	all      turn
	arrivals int64
	waiting  int
	changed  []*pool
}

// A kind is what buffers have in common that get the same answer from a pool.
type kind struct{ held, bytes, maxBytes int64 }

// A turn is that of all buffers, or of those of a kind, of a group in it, or of a member of that.
type turn struct {
	pool  *pool // what the buffers have in common
	above *turn
	key   any           // of above.below
	below map[any]*turn // by kind or pool; nil for a member
	next  []*turn       // a heap of those below that have not been passed over
	index int           // in above.next; -1 while it is passed over

	ranks   bool      // of a group or member, ranked by what it holds
	held    int64     // by the pool when the round began
	rank    rank      // of its first buffer
	waiting list.List // of a member: of *waiter, the oldest first
}

// A rank orders buffers: by what their groups hold, what their members hold, and when they came.
type rank struct{ group, member, arrival int64 }

func (r rank) compare(other rank) int {
	return cmp.Or(
		cmp.Compare(r.group, other.group), cmp.Compare(r.member, other.member), cmp.Compare(r.arrival, other.arrival))
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (t *turn) Len() int           { return len(t.next) }
func (t *turn) Less(i, j int) bool { return t.next[i].rank.compare(t.next[j].rank) < 0 }
func (t *turn) Swap(i, j int) {
	t.next[i], t.next[j] = t.next[j], t.next[i]
	t.next[i].index, t.next[j].index = i, j
}

func (t *turn) Push(x any) {
	below := x.(*turn)
	below.index = len(t.next)
	t.next = append(t.next, below)
}

func (t *turn) Pop() any {
	last := len(t.next) - 1
	below := t.next[last]
	below.index = -1
	t.next[last] = nil
	t.next = t.next[:last]
	return below
}

// measure sets the rank to that of the first buffer below.
func (t *turn) measure() {
	switch {
	case t.waiting.Len() > 0:
		t.rank = rank{member: t.held, arrival: t.first().arrival}
	case t.ranks:
		t.rank = t.next[0].rank
		t.rank.group = t.held
	default:
		t.rank = t.next[0].rank
	}
}

// first returns the buffer of a member that came first, nil if there is none.
func (t *turn) first() *waiter {
	if t.waiting.Len() == 0 {
		return nil
	}
	return t.waiting.Front().Value.(*waiter)
}

// moved puts a turn in order again whose rank may have changed.
func (t *turn) moved() {
	for t.above != nil && t.index >= 0 {
		t.measure()
		heap.Fix(t.above, t.index)
		t = t.above
	}
}

// pass passes a turn over, until it enters again.
func (t *turn) pass() {
	above := t.above
	switch heap.Remove(above, t.index); {
	case len(above.next) > 0:
		above.moved()
	case above.above != nil && above.index >= 0:
		above.pass()
	}
}

// enter puts a turn in order that is not.
func (t *turn) enter() {
	if t.above == nil || t.index >= 0 {
		return
	}
	t.measure()
	heap.Push(t.above, t)
	if t.above.index >= 0 {
		t.above.moved()
	} else {
		t.above.enter()
	}
}

// under returns the turn below t for a key. It makes one if there is none.
func (t *turn) under(key any, pool *pool, ranks bool) *turn {
	if t.below == nil {
		t.below = map[any]*turn{}
	}
	below := t.below[key]
	if below == nil {
		below = &turn{pool: pool, above: t, key: key, index: -1, ranks: ranks, held: pool.held()}
		t.below[key] = below
		if ranks {
			pool.places[below] = struct{}{}
		}
	}
	return below
}

// add adds a buffer that waits. The pools are those that the member of the buffer has.
func (q *queue) add(w *waiter) {
	q.arrivals++
	q.waiting++
	w.arrival = q.arrivals
	pools := w.buffer.budget.pools
	member, group, all := pools[0], pools[min(1, len(pools)-1)], pools[len(pools)-1]
	k := kind{w.buffer.held, w.bytes, w.buffer.maxBytes}
	w.turn = q.all.under(k, all, false).under(group, group, true).under(member, member, true)
	w.place = w.turn.waiting.PushBack(w)
	w.turn.enter()
}

// remove removes a buffer, and each turn that has no other one.
func (q *queue) remove(w *waiter) {
	t := w.turn
	w.turn = nil
	q.waiting--
	if t.waiting.Remove(w.place); t.waiting.Len() > 0 {
		t.moved()
		return
	}
	t.pass()
	for ; t.above != nil && len(t.below) == 0; t = t.above {
		delete(t.above.below, t.key)
		delete(t.pool.places, t)
	}
}

// first returns the first buffer that has not been passed over, nil if there is none.
func (q *queue) first() *waiter {
	t := &q.all
	for len(t.next) > 0 {
		t = t.next[0]
	}
	return t.first()
}

// refused passes over all buffers of the same kind that want memory of a pool which has refused this one.
func (w *waiter) refused(p *pool) (passed *turn) {
	for passed = w.turn; passed.pool != p || passed.above.pool == p; {
		passed = passed.above
	}
	passed.pass()
	return passed
}

// note says that a pool holds something else than before.
func (q *queue) note(p *pool) {
	if !p.changed && len(p.places) > 0 {
		p.changed = true
		q.changed = append(q.changed, p)
	}
}

// order puts the buffers in order by what is held now. Until the next call they stay in that order.
func (q *queue) order() {
	for _, p := range q.changed {
		p.changed = false
		for t := range p.places {
			t.held = p.held()
			t.moved()
		}
	}
	q.changed = q.changed[:0]
}
