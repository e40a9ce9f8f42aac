package report

import (
	"bytes"
	"maps"
	"slices"
	"sync"
)

// A Ring keeps the last lines of a log in memory. If it is full, it drops the oldest lines of the owners with the limit
// bytes, so that nobody can displace the lines of others by writing many. Its methods are safe for concurrent use.
type Ring struct {
	limit int // maximum number of bytes

	mu    sync.Mutex
	lines []ringLine // oldest first
	bytes int
}

type ringLine struct {
	owner string
	text  []byte
}

// NewRing returns a ring with room for limit bytes.
func NewRing(limit int) *Ring { return &Ring{limit: limit} }

// Add adds a line of an owner. It ignores a line that is longer than a quarter of the ring.
func (r *Ring) Add(owner string, line []byte) {
	if len(line) > r.limit/4 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes+len(line) > r.limit {
		r.trim(r.limit - r.limit/4)
	}
	r.lines = append(r.lines, ringLine{owner, bytes.Clone(line)})
	r.bytes += len(line)
}

// Lines returns the lines, oldest first. The caller must not change them.
func (r *Ring) Lines() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	texts := make([][]byte, len(r.lines))
	for i, l := range r.lines {
		texts[i] = l.text
	}
	return texts
}

// trim drops lines until at most this number of bytes is left. Callers free a quarter of the ring at a time, because
// trim visits every line. The mutex must be locked.
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

// fairShare returns the largest share for which all owners together hold at most total. What owners below the share do
// not use is available to the others.
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
