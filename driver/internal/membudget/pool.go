package membudget

import (
	"cmp"
	"slices"
)

// A pool is the memory for the buffers of a member, of a group, or of all.
type pool struct {
	limit int64
	free  int64

	levels    []level // sorted by missing
	refusedIn uint64  // the last round of serve in which the pool refused a waiter
}

// A level contains the buffers of a pool that need the same number of additional bytes.
type level struct {
	missing int64 // additional bytes that each of the buffers needs
	held    int64 // bytes that the buffers hold together, more than 0
}

func newPool(limit int64) *pool {
	return &pool{limit: limit, free: limit}
}

func (p *pool) held() int64 { return p.limit - p.free }

// hasRefused reports whether the pool has refused a waiter in this round.
func (p *pool) hasRefused(round uint64) bool { return p.refusedIn == round }

// grants reports whether the pool can safely grant the memory that a buffer waits for.
func (p *pool) grants(w *waiter, round uint64) bool {
	switch {
	case w.bytes > p.free, p.hasRefused(round) && w.buffer.held == 0:
	case w.buffer.missing() <= p.free: // the buffer can become full, and afterwards the pool is as safe as before
		return true
	case p.canFill(w):
		return true
	}
	p.refusedIn = round
	return false
}

// canFill reports whether the buffer can become full after the grant. It may use the free bytes and the bytes that
// other buffers return when they are full. Buffers that need less become full first.
func (p *pool) canFill(w *waiter) bool {
	free := p.free - w.bytes
	missing := w.buffer.missing() - w.bytes
	for _, others := range p.levels {
		if missing <= free || others.missing > free {
			break
		}
		free += others.held
		if others.missing == w.buffer.missing() {
			free -= w.buffer.held
		}
	}
	return missing <= free
}

// add adds bytes to the level of the buffers that need missing additional bytes.
func (p *pool) add(missing, bytes int64) {
	p.free -= bytes
	i, found := slices.BinarySearchFunc(p.levels, missing, func(l level, missing int64) int {
		return cmp.Compare(l.missing, missing)
	})
	if !found {
		p.levels = slices.Insert(p.levels, i, level{missing: missing})
	}
	if p.levels[i].held += bytes; p.levels[i].held == 0 {
		p.levels = slices.Delete(p.levels, i, i+1)
	}
}

// set changes the bytes that the buffer holds and their maximum, in all of its pools.
func (b *Buffer) set(held, maxBytes int64) {
	before, missed := b.held, b.missing()
	b.held, b.maxBytes = held, maxBytes
	for _, p := range b.budget.pools {
		p.add(missed, -before)
		p.add(b.missing(), held)
	}
}

// hold gives the buffer additional bytes, or takes them back if bytes is negative.
func (b *Buffer) hold(bytes int64) { b.set(b.held+bytes, b.maxBytes) }
