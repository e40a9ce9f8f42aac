// Package schedule decides whose turn is next where many want to work at the same time.
//
// A [Queue] has slots. Turns go round the groups, and round the members of each: the next slot goes to the group, and
// then to the member, that has the fewest. Checks of passwords wait in such a queue, whose size is fixed, and the parts
// of uploads in another one, whose size follows what they find out about the server.
//
// The [Requests] to a server, those that send parts too, wait in one whose size follows how long answers take. The time
// counts from the grant of the slot to the answer, never the time in the queue. A user who is alone has no limit, and
// no user has one before a distant server. While several users make requests, this holds:
//
//   - The last slot is for a tenant, or where only one has slots for a user, that has no request under way. So a user
//     with one request after another does not wait, however many sessions of others do.
//   - A light user makes less than a third of an equal part of the requests. If those that begin at once take 30 %
//     longer than a request that is alone, others slow the user down, and the number of slots shrinks in proportion.
//   - With fewer slots than one for each of two users, the users with many requests rest after each. So they take a
//     part of the time: down to a quarter.
//   - Otherwise the number grows with the answers, as long as others wait. Users who all have many so come to as many
//     as they ask for, and a light user decides when there are too many.
//
// A fixed number of slots would be simpler, but does not protect light users: in the bench, next to uploads by 25
// sessions of another user, a user keeps 0.54 of the speed with this rule, 0.28 with four slots and 0.12 with sixteen.
package schedule

import (
	"cmp"
	"container/heap"
	"container/list"
	"context"
	"sync"
	"time"
)

// fewParts says who makes few requests: less than an equal part of all, divided by this.
const fewParts = 3

// A Key says who gets a slot: a member of a group.
type Key struct{ Group, Member string }

// A Queue lets as many work at the same time as it has slots, and the others wait. It is safe for concurrent use.
//
// The next slot goes to the group that has the fewest, and in it to the member who has the fewest. Where these are
// several, turns go round: the one whose last turn was longest ago is next. So a member that asks many times waits
// longer, and makes no other member wait longer.
type Queue struct {
	kept int

	mu    sync.Mutex
	slots int
	all   node
	turns int64 // so far
}

// A node is everyone who has slots or waits for one, or a group of them, or a member of a group.
type node struct {
	name  string
	above *node
	below map[string]*node // by name
	used  int              // slots
	waits int              // requests for slots
	busy  int              // of those below, how many have slots

	next  []*node // a heap of those that may be next
	index int     // in above.next, or -1
	turn  int64   // the last one, or when the node began to wait

	waiting list.List // of a member: of *Slot, the oldest first
	resting bool      // gets no slot for now
}

// NewQueue returns a queue with so many slots. As many of them as are kept are for members who have none.
func NewQueue(slots, kept int) *Queue { return &Queue{slots: slots, kept: kept} }

// A Slot lets someone work. Leave gives it back.
type Slot struct {
	Waited bool // it was not free at once
	Others int  // slots that others had when it was given

	queue   *Queue
	member  *node
	waiting *list.Element // of member.waiting; nil since it was given
	given   chan struct{} // closed then; nil if it was free at once
}

// Enter waits for a slot. The error is that of ctx, whose end gives up the place in the queue.
func (q *Queue) Enter(ctx context.Context, key Key) (*Slot, error) {
	q.mu.Lock()
	s := q.join(key)
	if s.Waited = s.waiting != nil; s.Waited {
		s.given = make(chan struct{})
	}
	q.mu.Unlock()
	if !s.Waited {
		return s, nil
	}
	select {
	case <-s.given:
		return s, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.waiting != nil {
		q.leave(s)
		q.forget(s.member)
	} else {
		q.release(s.member) // it was given at the same moment
	}
	return nil, ctx.Err()
}

// Leave gives the slot to the next. It is called once.
func (s *Slot) Leave() { s.LeaveAndRest(0) }

// LeaveAndRest gives the slot to the next. If the member waits for another one, it waits for so long at least.
func (s *Slot) LeaveAndRest(rest time.Duration) {
	q, m := s.queue, s.member
	q.mu.Lock()
	defer q.mu.Unlock()
	if rest > 0 && m.waits > 0 && !m.resting {
		m.resting = true
		m.exit()
		time.AfterFunc(rest, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			m.resting = false
			if m.waits > 0 {
				q.enter(m)
				q.serve()
			}
		})
	}
	q.release(m)
}

// Resize changes the number of slots. No member loses one.
func (q *Queue) Resize(slots int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.slots != slots {
		q.slots = slots
		q.serve()
	}
}

// Waiting is how many requests for slots there are.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all.waits
}

// A Load is how much there is to do.
type Load struct {
	Used    int  // slots
	Waiting int  // requests for slots
	Few     bool // the member, or its group, makes few requests compared with the others
}

// Load is the load of the queue, as the member sees it who has the slot.
func (s *Slot) Load() Load {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	l := Load{Used: s.queue.all.used, Waiting: s.queue.all.waits}
	for n := s.member; n.above != nil; n = n.above {
		if max(1, n.requests())*len(n.above.below)*fewParts <= n.above.requests() {
			l.Few = true
		}
	}
	return l
}

// join asks for a slot, at the end of the queue.
func (q *Queue) join(key Key) *Slot {
	s := &Slot{queue: q, member: q.all.under(key.Group).under(key.Member)}
	s.waiting = s.member.waiting.PushBack(s)
	s.member.await(1)
	q.enter(s.member)
	q.serve()
	return s
}

// leave takes a request out of the queue.
func (q *Queue) leave(s *Slot) {
	s.member.waiting.Remove(s.waiting)
	s.waiting = nil
	if s.member.await(-1); s.member.waits == 0 {
		s.member.exit()
	}
}

// release takes a slot back.
func (q *Queue) release(member *node) {
	member.use(-1)
	q.forget(member)
	q.serve()
}

// serve gives slots as long as the next one may have one.
func (q *Queue) serve() {
	for q.serveOne() {
	}
}

// serveOne gives a slot to the next one, or returns false if there is none, or no slot for it.
func (q *Queue) serveOne() bool {
	if len(q.all.next) == 0 {
		return false
	}
	group := q.all.next[0]
	member := group.next[0]
	if !q.mayUse(group, member) {
		return false
	}
	s := member.waiting.Front().Value.(*Slot)
	s.Others = q.all.used
	q.turns++
	member.turn, group.turn = q.turns, q.turns
	member.use(1)
	q.leave(s)
	if s.given != nil {
		close(s.given)
	}
	return true
}

// mayUse tells whether there is a slot for a member. One that is kept is for a group without slots, or for a member
// without slots where no other group has any. There each of the others counts once, however many slots it has.
func (q *Queue) mayUse(group, member *node) bool {
	switch {
	case q.all.used < q.slots-q.kept:
		return true
	case q.kept == 0:
		return false
	case group.used == 0:
		return q.all.busy < q.slots
	}
	return group.used == q.all.used && member.used == 0 && group.busy < q.slots
}

// enter puts a member that waits into the order of those that may be next, unless it rests.
func (q *Queue) enter(member *node) {
	q.turns++
	for n := member; n.above != nil && n.index < 0 && !n.resting; n = n.above {
		n.turn = q.turns
		heap.Push(n.above, n)
	}
}

// exit takes a member out of that order.
func (n *node) exit() {
	for ; n.above != nil && n.index >= 0 && len(n.next) == 0; n = n.above {
		heap.Remove(n.above, n.index)
	}
}

// forget removes a member that has no slots and does not wait.
func (q *Queue) forget(member *node) {
	if member.requests() > 0 {
		return
	}
	for n := member; n.above != nil && len(n.below) == 0; n = n.above {
		delete(n.above.below, n.name)
	}
}

// under returns the node below that has a name.
func (n *node) under(name string) *node {
	below := n.below[name]
	if below == nil {
		if n.below == nil {
			n.below = make(map[string]*node)
		}
		below = &node{above: n, name: name, index: -1}
		n.below[name] = below
	}
	return below
}

// requests is how many slots there are, and requests for more.
func (n *node) requests() int { return n.used + n.waits }

// await changes the number of requests for slots.
func (n *node) await(requests int) {
	for ; n != nil; n = n.above {
		n.waits += requests
	}
}

// use changes the number of slots that a member has by one.
func (n *node) use(slots int) {
	for ; n != nil; n = n.above {
		n.used += slots
		if n.above == nil {
			return
		}
		if n.index >= 0 {
			heap.Fix(n.above, n.index)
		}
		if n.used == max(0, slots) { // the first, or none any more
			n.above.busy += slots
		}
	}
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (n *node) Len() int           { return len(n.next) }
func (n *node) Less(i, j int) bool { return n.next[i].compare(n.next[j]) < 0 }
func (n *node) Swap(i, j int) {
	n.next[i], n.next[j] = n.next[j], n.next[i]
	n.next[i].index, n.next[j].index = i, j
}

func (n *node) Push(x any) {
	below := x.(*node)
	below.index = len(n.next)
	n.next = append(n.next, below)
}

func (n *node) Pop() any {
	last := len(n.next) - 1
	below := n.next[last]
	n.next[last], n.next, below.index = nil, n.next[:last], -1
	return below
}

// compare orders nodes by whose turn is next.
func (n *node) compare(other *node) int {
	return cmp.Or(cmp.Compare(n.used, other.used), cmp.Compare(n.turn, other.turn))
}
