package report

import (
	"bytes"
	"maps"
	"slices"
	"sync"
)

// A Ring keeps the last lines of a log in memory. When it is full, it drops the oldest lines of those who hold the
// most, so that nobody can drop the lines of others by writing many. Its methods may be called by any goroutine.
type Ring struct {
	most int // bytes

	mu    sync.Mutex
	lines []ringLine // the oldest first
	bytes int
}

type ringLine struct {
	owner string
	text  []byte
}

// NewRing returns a ring that keeps at most some bytes of lines.
func NewRing(most int) *Ring { return &Ring{most: most} }

// Add keeps a line of an owner. It drops a line that is longer than a quarter of the ring.
func (r *Ring) Add(owner string, line []byte) {
	if len(line) > r.most/4 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes+len(line) > r.most {
		r.trim(r.most - r.most/4)
	}
	r.lines = append(r.lines, ringLine{owner, bytes.Clone(line)})
	r.bytes += len(line)
}

// Lines returns the lines, the oldest first. The caller must not change them.
func (r *Ring) Lines() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	texts := make([][]byte, len(r.lines))
	for i, l := range r.lines {
		texts[i] = l.text
	}
	return texts
}

// trim drops lines until the ring has at most some bytes. Callers free a quarter of the ring at once, because trim
// visits every line. The mutex is locked.
func (r *Ring) trim(bytes int) {
	held := map[string]int{}
	for _, l := range r.lines {
		held[l.owner] += len(l.text)
	}
	share := fairShare(slices.Collect(maps.Values(held)), bytes)
	r.lines = slices.DeleteFunc(r.lines, func(l ringLine) bool {
		if held[l.owner] <= share || r.bytes <= bytes {
			return false
		}
		held[l.owner] -= len(l.text)
		r.bytes -= len(l.text)
		return true
	})
}

// fairShare returns the largest share with which all owners together hold no more than total. Those who hold less than
// the share leave the rest to the others.
func fairShare(held []int, total int) int {
	slices.Sort(held)
	for i, h := range held {
		share := total / (len(held) - i)
		if h > share {
			return share
		}
		total -= h
	}
	return total
}
