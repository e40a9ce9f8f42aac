// Package schedule shares limited capacity fairly between users and tenants.
//
// A [Queue] has a number of slots. A slot is acquired for a member of a group, such as a user of a tenant. A free slot
// goes to the waiting group that has the fewest slots, and in it to the member that has the fewest:
//
//	slot, err := queue.Acquire(ctx, schedule.Key{Group: tenant, Member: user})
//	if err != nil {
//		return err // ctx has ended
//	}
//	defer slot.Release()
//
// Password checks, for example, use a queue of a fixed size.
//
// [Requests] schedules the requests to an S3 server, including those that send parts. It uses a queue whose size
// depends on the response times of the server. A response time begins when the request gets its slot, so the time in
// the queue does not count. Requests are not limited while only one user makes requests, or if the server is far away.
// Otherwise these rules apply:
//
//   - The last slot is reserved for a tenant without a request in flight or, if only one tenant has slots, for a user
//     without one. A user who sends one request after another therefore does not wait, regardless of the number of
//     sessions of others.
//   - A user is light if the user makes less than a third of an equal share of the requests. If requests of light users
//     that did not wait take 30 % longer than requests on an idle server, the number of slots shrinks in proportion.
//   - If the number of slots falls below two, users with many requests pause after each request, so that they use only
//     part of the time, down to a quarter.
//   - Otherwise the number of slots grows with each response, as long as requests wait. If all users make many
//     requests, it grows as far as they need; light users determine when there are too many.
//
// A fixed number of slots would be simpler but does not protect light users: in the benchmark, next to uploads by 25
// sessions of another user, a user keeps 0.54 of the speed with these rules, 0.28 with four slots and 0.12 with
// sixteen.
package schedule

import (
	"cmp"
	"container/heap"
	"container/list"
	"context"
	"sync"
	"time"
)

// fewDivisor determines who makes few requests: less than an equal share of all requests, divided by this number.
const fewDivisor = 3

// A Key identifies a member of a group.
type Key struct{ Group, Member string }

// A Queue limits how many slots are in use; further callers wait. It is safe for concurrent use.
//
// The next slot goes to the group that has the fewest slots, and in it to the member that has the fewest. Ties are
// resolved round-robin: the one that got its last slot longest ago is next. A member with many requests therefore waits
// longer itself, but does not delay other members.
type Queue struct {
	reserved int // slots for members without a slot

	mu      sync.Mutex
	slots   int
	root    node
	counter int64 // orders events, see node.order
}

// A node is the root, a group or a member of the queue.
type node struct {
	name     string
	parent   *node
	children map[string]*node // by name
	used     int              // slots in use by the node and its descendants
	waits    int              // their waiting requests
	busy     int              // number of children with slots

	next  []*node // heap of the children that may get a slot
	index int     // in parent.next, or -1
	order int64   // counter at the last slot, or when the node began to wait

	waiting list.List // waiting *Slot values, the oldest first; only for members
	paused  bool      // gets no slot for now
}

// NewQueue returns a queue with the given number of slots. The reserved slots among them are for members without a
// slot.
func NewQueue(slots, reserved int) *Queue { return &Queue{slots: slots, reserved: reserved} }

// A Slot is a slot of a queue in use. Release returns it.
type Slot struct {
	Waited bool // the slot was not free immediately
	Others int  // number of slots in use when this one was granted

	queue   *Queue
	member  *node
	waiting *list.Element // in member.waiting; nil once granted
	granted chan struct{} // closed when granted; nil if the slot was free immediately
}

// Acquire waits for a slot. If ctx ends first, it returns the error of ctx.
func (q *Queue) Acquire(ctx context.Context, key Key) (*Slot, error) {
	q.mu.Lock()
	s := q.request(key)
	if s.Waited = s.waiting != nil; s.Waited {
		s.granted = make(chan struct{})
	}
	q.mu.Unlock()
	if !s.Waited {
		return s, nil
	}
	select {
	case <-s.granted:
		return s, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.waiting != nil {
		q.dequeue(s)
		q.forget(s.member)
	} else {
		q.release(s.member) // the slot was granted at the same moment
	}
	return nil, ctx.Err()
}

// Release returns the slot. It must be called once.
func (s *Slot) Release() { s.ReleaseAndPause(0) }

// ReleaseAndPause returns the slot. If the member waits for another slot, it gets none during the pause.
func (s *Slot) ReleaseAndPause(pause time.Duration) {
	q, m := s.queue, s.member
	q.mu.Lock()
	defer q.mu.Unlock()
	if pause > 0 && m.waits > 0 && !m.paused {
		m.paused = true
		m.exit()
		time.AfterFunc(pause, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			m.paused = false
			if m.waits > 0 {
				q.enter(m)
				q.serve()
			}
		})
	}
	q.release(m)
}

// Resize changes the number of slots. Slots in use are not affected.
func (q *Queue) Resize(slots int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.slots != slots {
		q.slots = slots
		q.serve()
	}
}

// Waiting returns the number of waiting requests.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.root.waits
}

// A Load describes the load of a queue from the perspective of a member.
type Load struct {
	Used    int  // slots in use
	Waiting int  // waiting requests
	Few     bool // the member or its group makes few requests compared to others
}

// Load returns the load of the queue from the perspective of the member that has the slot.
func (s *Slot) Load() Load {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	l := Load{Used: s.queue.root.used, Waiting: s.queue.root.waits}
	for n := s.member; n.parent != nil; n = n.parent {
		if max(1, n.requests())*len(n.parent.children)*fewDivisor <= n.parent.requests() {
			l.Few = true
		}
	}
	return l
}

// request adds a request to the queue. The caller must hold q.mu, as for all functions below.
func (q *Queue) request(key Key) *Slot {
	s := &Slot{queue: q, member: q.root.child(key.Group).child(key.Member)}
	s.waiting = s.member.waiting.PushBack(s)
	s.member.await(1)
	q.enter(s.member)
	q.serve()
	return s
}

// dequeue removes a request from the queue.
func (q *Queue) dequeue(s *Slot) {
	s.member.waiting.Remove(s.waiting)
	s.waiting = nil
	if s.member.await(-1); s.member.waits == 0 {
		s.member.exit()
	}
}

// release returns a slot of a member and grants it to the next one.
func (q *Queue) release(member *node) {
	member.use(-1)
	q.forget(member)
	q.serve()
}

// serve grants slots as long as possible.
func (q *Queue) serve() {
	for q.serveOne() {
	}
}

// serveOne grants a slot to the next member. It returns false if no member waits or no slot is free for it.
func (q *Queue) serveOne() bool {
	if len(q.root.next) == 0 {
		return false
	}
	group := q.root.next[0]
	member := group.next[0]
	if !q.mayUse(group, member) {
		return false
	}
	s := member.waiting.Front().Value.(*Slot)
	s.Others = q.root.used
	q.counter++
	member.order, group.order = q.counter, q.counter
	member.use(1)
	q.dequeue(s)
	if s.granted != nil {
		close(s.granted)
	}
	return true
}

// mayUse reports whether a slot is free for a member. A reserved slot is for a group without slots, or for a member
// without slots if no other group has any. For reserved slots, each of the others counts only once, regardless of the
// number of its slots.
func (q *Queue) mayUse(group, member *node) bool {
	switch {
	case q.root.used < q.slots-q.reserved:
		return true
	case q.reserved == 0:
		return false
	case group.used == 0:
		return q.root.busy < q.slots
	}
	return group.used == q.root.used && member.used == 0 && group.busy < q.slots
}

// enter adds a waiting member to the heaps of those that may get a slot, unless it is paused.
func (q *Queue) enter(member *node) {
	q.counter++
	for n := member; n.parent != nil && n.index < 0 && !n.paused; n = n.parent {
		n.order = q.counter
		heap.Push(n.parent, n)
	}
}

// exit removes a member from these heaps.
func (n *node) exit() {
	for ; n.parent != nil && n.index >= 0 && len(n.next) == 0; n = n.parent {
		heap.Remove(n.parent, n.index)
	}
}

// forget removes the nodes of a member that has no slots and does not wait.
func (q *Queue) forget(member *node) {
	if member.requests() > 0 {
		return
	}
	for n := member; n.parent != nil && len(n.children) == 0; n = n.parent {
		delete(n.parent.children, n.name)
	}
}

// child returns the child with this name. It creates the child if it does not exist.
func (n *node) child(name string) *node {
	child := n.children[name]
	if child == nil {
		if n.children == nil {
			n.children = make(map[string]*node)
		}
		child = &node{parent: n, name: name, index: -1}
		n.children[name] = child
	}
	return child
}

// requests returns the number of slots in use and of waiting requests.
func (n *node) requests() int { return n.used + n.waits }

// await adds to the number of waiting requests.
func (n *node) await(requests int) {
	for ; n != nil; n = n.parent {
		n.waits += requests
	}
}

// use adds 1 or -1 to the number of slots of a member.
func (n *node) use(slots int) {
	for ; n != nil; n = n.parent {
		n.used += slots
		if n.parent == nil {
			return
		}
		if n.index >= 0 {
			heap.Fix(n.parent, n.index)
		}
		if n.used == max(0, slots) { // got its first slot or returned its last one
			n.parent.busy += slots
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
	child := x.(*node)
	child.index = len(n.next)
	n.next = append(n.next, child)
}

func (n *node) Pop() any {
	last := len(n.next) - 1
	child := n.next[last]
	n.next[last], n.next, child.index = nil, n.next[:last], -1
	return child
}

// compare returns a negative number if n gets a slot before other.
func (n *node) compare(other *node) int {
	return cmp.Or(cmp.Compare(n.used, other.used), cmp.Compare(n.order, other.order))
}
