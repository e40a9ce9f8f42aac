package membudget

import (
	"cmp"
	"slices"
)

// A queue holds the buffers that wait, by member.
type queue struct {
	lanes    map[*pool]*lane // by the pool of the member
	arrivals int64
	waiting  int
}

// A lane holds the waiting buffers of a member. Those that hold memory already come first, and among equals the oldest:
// a part that has begun returns its memory when it is full, and one that has not begun would only add to those that
// wait with memory.
type lane struct {
	member, group *pool
	begun, fresh  []*waiter
}

// arrival returns when the oldest buffer of the lane came, as a number.
func (l *lane) arrival() int64 {
	if len(l.begun) == 0 {
		return l.fresh[0].arrival
	}
	if len(l.fresh) == 0 {
		return l.begun[0].arrival
	}
	return min(l.begun[0].arrival, l.fresh[0].arrival)
}

// list returns the list of the lane in which a buffer waits.
func (l *lane) list(w *waiter) *[]*waiter {
	if w.buffer.held > 0 {
		return &l.begun
	}
	return &l.fresh
}

// add adds a buffer that waits.
func (q *queue) add(w *waiter) {
	q.arrivals++
	q.waiting++
	w.arrival, w.waits = q.arrivals, true
	pools := w.buffer.budget.pools // the member's first
	l := q.lanes[pools[0]]
	if l == nil {
		l = &lane{member: pools[0], group: pools[min(1, len(pools)-1)]}
		q.lanes[pools[0]] = l
	}
	list := l.list(w)
	*list = append(*list, w)
}

// remove removes a buffer that has given up.
func (q *queue) remove(w *waiter) {
	l := q.lanes[w.buffer.budget.pools[0]]
	list := l.list(w)
	*list = slices.DeleteFunc(*list, func(other *waiter) bool { return other == w })
	q.removed(w)
	q.forget(l)
}

// removed counts a buffer that waits no longer.
func (q *queue) removed(w *waiter) {
	q.waiting--
	w.waits = false
}

// forget removes a lane without buffers.
func (q *queue) forget(l *lane) {
	if len(l.begun)+len(l.fresh) == 0 {
		delete(q.lanes, l.member)
	}
}

// order returns the lanes in the order in which they get memory: first the group that holds least, and in it the
// member that holds least. Among equals it is the one that has waited longest.
func (q *queue) order() []*lane {
	lanes := make([]*lane, 0, len(q.lanes))
	for _, l := range q.lanes {
		lanes = append(lanes, l)
	}
	slices.SortFunc(lanes, func(a, b *lane) int {
		return cmp.Or(cmp.Compare(a.group.held(), b.group.held()), cmp.Compare(a.member.held(), b.member.held()),
			cmp.Compare(a.arrival(), b.arrival()))
	})
	return lanes
}
