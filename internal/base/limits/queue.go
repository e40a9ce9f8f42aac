package limits

import (
	"context"
	"slices"
	"sync"
)

// A Queue lets a number of its users work at the same time, and the others wait. Turns go
// round the keys K, in the order in which they came: who asks many times waits longer,
// and makes no other key wait longer.
type Queue[K comparable] struct {
	mu      sync.Mutex
	free    int
	waiting map[K][]chan struct{} // closed at one's turn
	turns   []K                   // of waiting, the next first
}

// NewQueue makes a queue in which so many work at the same time.
func NewQueue[K comparable](slots int) *Queue[K] {
	return &Queue[K]{free: slots, waiting: make(map[K][]chan struct{})}
}

// Enter waits for a turn. The caller calls leave once, when it has done its work. The
// error is that of ctx, whose end gives up the place in the queue.
func (q *Queue[K]) Enter(ctx context.Context, key K) (leave func(), err error) {
	turn := q.wait(key)
	if turn == nil {
		return q.leave, nil
	}
	select {
	case <-turn:
		return q.leave, nil
	case <-ctx.Done():
		if !q.giveUp(key, turn) {
			q.leave() // the turn came at the same moment
		}
		return nil, ctx.Err()
	}
}

// wait takes a free slot and returns nil, or a place in the queue.
func (q *Queue[K]) wait(key K) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.free > 0 {
		q.free--
		return nil
	}
	if len(q.waiting[key]) == 0 {
		q.turns = append(q.turns, key)
	}
	turn := make(chan struct{})
	q.waiting[key] = append(q.waiting[key], turn)
	return turn
}

// leave gives the slot to the next.
func (q *Queue[K]) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.turns) == 0 {
		q.free++
		return
	}
	key := q.turns[0]
	q.turns = q.turns[1:]
	turn := q.waiting[key][0]
	if q.remove(key, 0); len(q.waiting[key]) > 0 {
		q.turns = append(q.turns, key)
	}
	close(turn)
}

// giveUp removes a place from the queue, and returns false if its turn has come.
func (q *Queue[K]) giveUp(key K, turn chan struct{}) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting[key], turn)
	if i < 0 {
		return false
	}
	if q.remove(key, i); len(q.waiting[key]) == 0 {
		q.turns = slices.DeleteFunc(q.turns, func(k K) bool { return k == key })
	}
	return true
}

// remove removes a place of a key.
func (q *Queue[K]) remove(key K, i int) {
	q.waiting[key] = slices.Delete(q.waiting[key], i, i+1)
	if len(q.waiting[key]) == 0 {
		delete(q.waiting, key)
	}
}
