package audit

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
)

// maxRecent is how many lines a [Recent] keeps.
const maxRecent = 200

// Recent keeps the last 200 lines of the audit log in memory. The zero value has none. Its methods may be called by
// any goroutine.
type Recent struct {
	mu    sync.Mutex
	lines [maxRecent][]byte
	next  int // index of the oldest line, and of the next one
}

// Write keeps a line.
func (r *Recent) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines[r.next] = bytes.Clone(line)
	r.next = (r.next + 1) % maxRecent
	return len(line), nil
}

// Lines are those that are kept, the oldest first.
func (r *Recent) Lines() []json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := []json.RawMessage{}
	for _, line := range slices.Concat(r.lines[r.next:], r.lines[:r.next]) {
		if line != nil {
			lines = append(lines, bytes.TrimSpace(line))
		}
	}
	return lines
}
