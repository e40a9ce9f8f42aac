package membudget

import (
	"cmp"
	"slices"
)

// A queue contains the waiting buffers.
type queue struct {
	lanes    map[*pool]*lane // by the pool of the member
	arrivals int64
	waiting  int
}

// A lane contains the waiting buffers of a member. Buffers that already have memory come first, because they return it
// when they are full, while other buffers would only hold more memory while they wait. Otherwise the oldest comes
// first.
type lane struct {
	member, group *pool
	begun, fresh  []*waiter // waiters with memory, and waiters without
}

// arrival returns the sequence number of the oldest buffer.
func (l *lane) arrival() int64 {
	if len(l.begun) == 0 {
		return l.fresh[0].arrival
	}
	if len(l.fresh) == 0 {
		return l.begun[0].arrival
	}
	return min(l.begun[0].arrival, l.fresh[0].arrival)
}

// list returns the list that a buffer waits in.
func (l *lane) list(w *waiter) *[]*waiter {
	if w.buffer.held > 0 {
		return &l.begun
	}
	return &l.fresh
}

// add adds a waiting buffer.
func (q *queue) add(w *waiter) {
	q.arrivals++
	q.waiting++
	w.arrival, w.queued = q.arrivals, true
	pools := w.buffer.budget.pools // the pool of the member comes first
	l := q.lanes[pools[0]]
	if l == nil {
		l = &lane{member: pools[0], group: pools[min(1, len(pools)-1)]}
		q.lanes[pools[0]] = l
	}
	list := l.list(w)
	*list = append(*list, w)
}

// remove removes a buffer whose context has ended.
func (q *queue) remove(w *waiter) {
	l := q.lanes[w.buffer.budget.pools[0]]
	list := l.list(w)
	*list = slices.DeleteFunc(*list, func(other *waiter) bool { return other == w })
	q.countRemoved(w)
	q.forget(l)
}

// countRemoved updates the count after a buffer was removed from its list.
func (q *queue) countRemoved(w *waiter) {
	q.waiting--
	w.queued = false
}

// forget removes the lane if it is empty.
func (q *queue) forget(l *lane) {
	if len(l.begun)+len(l.fresh) == 0 {
		delete(q.lanes, l.member)
	}
}

// order returns the lanes in the order in which they get memory: first the group with the least memory, and in it the
// member with the least memory. Ties are resolved by arrival.
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
