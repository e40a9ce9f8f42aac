package audit

import (
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/report"
)

// maxQueued limits the bytes of the lines that wait for one destination.
const maxQueued = 16 << 20

// A queue holds the lines that wait for a destination, in the order in which they came.
type queue struct {
	mu    sync.Mutex
	lines []queued
	bytes *report.Shares
	full  map[report.Owner]bool // had a line that timed out since there was room
	added chan struct{}         // has a value while there may be lines
	taken chan struct{}         // closed and replaced when lines are taken
}

// A queued line waits for the destination.
type queued struct {
	owner report.Owner
	line  []byte
	since time.Time
}

func newQueue() *queue {
	return &queue{
		bytes: report.NewShares(maxQueued), full: map[report.Owner]bool{},
		added: make(chan struct{}, 1), taken: make(chan struct{}),
	}
}

// add appends a line, and reports whether there was room for it. Otherwise taken is closed when there may be room.
func (q *queue) add(owner report.Owner, line []byte) (taken <-chan struct{}, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.bytes.Fits(owner, len(line)) {
		return q.taken, false
	}
	q.lines = append(q.lines, queued{owner, line, time.Now()})
	q.bytes.Add(owner, len(line))
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
		q.bytes.Add(l.owner, -len(l.line))
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

// roomy reports whether half of the share of an owner is free, or more.
func (q *queue) roomy(owner report.Owner) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes.Roomy(owner)
}

// spare reports whether an eighth of the queue is free, or more.
func (q *queue) spare() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes.Free() >= maxQueued/8
}

// setFull records that a line of an owner has timed out. waitedInVain reports it until there is room.
func (q *queue) setFull(owner report.Owner) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.full[owner] = true
}

func (q *queue) waitedInVain(owner report.Owner) bool {
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
