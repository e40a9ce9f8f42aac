package audit

import (
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/report"
)

// maxQueued limits the bytes of the lines that wait for one destination.
const maxQueued = 16 << 20

// A lineQueue holds the lines that wait for a destination, in order.
type lineQueue struct {
	mu    sync.Mutex
	lines []queuedLine
	bytes *report.Shares
	full  map[report.Owner]bool // owners with a line that timed out, until there is room again
	added chan struct{}         // has a value if there may be lines
	taken chan struct{}         // closed and replaced when lines are taken
}

// A queuedLine is a line that waits for the destination.
type queuedLine struct {
	owner report.Owner
	line  []byte
	since time.Time
}

func newQueue() *lineQueue {
	return &lineQueue{
		bytes: report.NewShares(maxQueued), full: map[report.Owner]bool{},
		added: make(chan struct{}, 1), taken: make(chan struct{}),
	}
}

// add appends a line, and reports whether there was room for it. If not, taken is closed when there may be room.
func (q *lineQueue) add(owner report.Owner, line []byte) (taken <-chan struct{}, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.bytes.Fits(owner, len(line)) {
		return q.taken, false
	}
	q.lines = append(q.lines, queuedLine{owner, line, time.Now()})
	q.bytes.Add(owner, len(line))
	delete(q.full, owner)
	select {
	case q.added <- struct{}{}:
	default:
	}
	return nil, true
}

// take removes lines from the front until they have size bytes or more, and returns them as one batch. The batch is
// empty if there are no lines.
func (q *lineQueue) take(size int) *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := &batch{}
	for i, l := range q.lines {
		q.lines[i].line = nil // release the memory, because the array may live on
		if b.lines == 0 {
			b.since = l.since
		}
		b.text = append(b.text, l.line...)
		b.lines++
		q.bytes.Add(l.owner, -len(l.line))
		if len(b.text) >= size {
			break
		}
	}
	if q.lines = q.lines[b.lines:]; len(q.lines) == 0 {
		q.lines = nil // release the array
		clear(q.full)
	}
	close(q.taken)
	q.taken = make(chan struct{})
	return b
}

// hasRoom reports whether at least half of an owner's share is free.
func (q *lineQueue) hasRoom(owner report.Owner) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes.HasRoom(owner)
}

// spare reports whether at least an eighth of the queue is free.
func (q *lineQueue) spare() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes.Free() >= maxQueued/8
}

// setFull records that a line of an owner timed out. isFull returns true until there is room.
func (q *lineQueue) setFull(owner report.Owner) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.full[owner] = true
}

func (q *lineQueue) isFull(owner report.Owner) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.full[owner]
}

// len returns the number of waiting lines.
func (q *lineQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.lines)
}
