package audit

import (
	"sync"
	"time"
)

// maxQueued limits the bytes of the lines that wait for one destination.
const maxQueued = 16 << 20

// An Owner is the user whose session has made a line. The zero value stands for clients that are not logged in, for
// administrators and for the server.
type Owner struct{ Tenant, User string }

// A queue holds the lines that wait for a destination, in the order in which they came. Its bytes are shared: the lines
// of a tenant take at most as much as is free, and the lines of a user at most half of that. So the users of one tenant
// can fill half of an empty queue, and whoever fills a queue leaves room to the others.
type queue struct {
	mu    sync.Mutex
	lines []queued
	bytes int
	held  map[Owner]int  // bytes by tenant, without a user, and by user
	full  map[Owner]bool // had a line that timed out since there was room
	added chan struct{}  // has a value while there may be lines
	taken chan struct{}  // closed and replaced when lines are taken
}

// A queued line waits for the destination.
type queued struct {
	owner Owner
	line  []byte
	since time.Time
}

func newQueue() *queue {
	return &queue{
		held: map[Owner]int{}, full: map[Owner]bool{}, added: make(chan struct{}, 1), taken: make(chan struct{}),
	}
}

// add appends a line, and reports whether there was room for it. Otherwise taken is closed when there may be room.
func (q *queue) add(owner Owner, line []byte) (taken <-chan struct{}, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.hasRoom(owner, len(line)) {
		return q.taken, false
	}
	q.lines = append(q.lines, queued{owner, line, time.Now()})
	q.count(owner, len(line))
	delete(q.full, owner)
	select {
	case q.added <- struct{}{}:
	default:
	}
	return nil, true
}

// take removes lines from the front until their text has most bytes or more, and returns them as one text. The batch
// has no lines if the queue is empty.
func (q *queue) take(most int) *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := &batch{}
	for i, l := range q.lines {
		q.lines[i].line = nil // the array may live on
		if b.lines == 0 {
			b.since = l.since
		}
		b.text = append(b.text, l.line...)
		b.lines++
		q.count(l.owner, -len(l.line))
		if len(b.text) >= most {
			break
		}
	}
	if q.lines = q.lines[b.lines:]; len(q.lines) == 0 {
		q.lines = nil // frees the array
		clear(q.full)
	}
	close(q.taken)
	q.taken = make(chan struct{})
	return b
}

// count adds to the bytes of an owner and its tenant. The mutex is locked.
func (q *queue) count(owner Owner, bytes int) {
	q.bytes += bytes
	for _, of := range owner.scopes() {
		if q.held[of] += bytes; q.held[of] == 0 {
			delete(q.held, of)
		}
	}
}

// scopes returns the tenant and the user.
func (o Owner) scopes() []Owner {
	if o == (Owner{}) {
		return nil
	}
	return []Owner{{Tenant: o.Tenant}, o}
}

// hasRoom reports whether so many bytes of an owner fit into the queue and into the shares of the owner. The mutex is
// locked.
func (q *queue) hasRoom(owner Owner, bytes int) bool {
	share := maxQueued - q.bytes
	if bytes > share {
		return false
	}
	for _, of := range owner.scopes() {
		if q.held[of]+bytes > share {
			return false
		}
		share /= 2
	}
	return true
}

// roomy reports whether half of the share of an owner is free, or more.
func (q *queue) roomy(owner Owner) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if owner == (Owner{}) {
		return q.bytes <= maxQueued/2
	}
	share := maxQueued - q.bytes
	for _, of := range owner.scopes() {
		if q.held[of] > share/2 {
			return false
		}
		share /= 2
	}
	return true
}

// spare reports whether an eighth of the queue is free, or more.
func (q *queue) spare() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maxQueued-q.bytes >= maxQueued/8
}

// setFull records that a line of an owner has timed out. waitedInVain reports it until there is room.
func (q *queue) setFull(owner Owner) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.full[owner] = true
}

func (q *queue) waitedInVain(owner Owner) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.full[owner]
}

// len returns how many lines wait.
func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.lines)
}
