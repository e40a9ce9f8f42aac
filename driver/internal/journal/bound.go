package journal

import "sync"

// A bound is the offset up to which the parts of an upload count. The parts after it may be those of a session
// before. The last of them may end with the file, and a client that found its whole file there would send no more. So
// the bound moves only with the parts that the session itself has stored, each of which was followed by a byte of its
// client.
type bound struct {
	mu     sync.Mutex
	offset int64           // unknownOffset where all parts count
	stored map[int64]int64 // the ends of the parts after the offset that the session has stored, by where they begin
}

// get returns the offset.
func (b *bound) get() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.offset
}

// set moves the bound.
func (b *bound) set(offset int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offset, b.stored = offset, nil
}

// move notes that the session has stored the part from begin to end.
func (b *bound) move(begin, end int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.offset == unknownOffset || begin < b.offset {
		return
	}
	if b.stored == nil {
		b.stored = map[int64]int64{}
	}
	b.stored[begin] = end
	for next, ok := b.stored[b.offset]; ok; next, ok = b.stored[b.offset] {
		delete(b.stored, b.offset)
		b.offset = next
	}
}
