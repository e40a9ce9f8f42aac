package membudget

import (
	"cmp"
	"slices"
)

// A pool is the memory of some of the buffers: of a member, of a group, or of all.
type pool struct {
	limit int64
	free  int64

	levels    []level // what is held, by those that miss least first
	refusedIn uint64  // the last round of serve in which the pool has refused a waiter
}

// A level is the buffers of a pool that miss the same.
type level struct {
	missing int64 // bytes that each of them misses
	held    int64 // bytes that they hold together, which is more than 0
}

func newPool(limit int64) *pool {
	return &pool{limit: limit, free: limit}
}

func (p *pool) held() int64 { return p.limit - p.free }

// refused tells whether the pool has refused a waiter in a round.
func (p *pool) refused(round uint64) bool { return p.refusedIn == round }

// grants tells whether the pool has what a buffer waits for.
func (p *pool) grants(r *waiter, round uint64) bool {
	switch {
	case r.bytes > p.free, p.refused(round) && r.buffer.held == 0:
	case r.buffer.missing() <= p.free: // it can fill at once, and then all is as it was, which was safe
		return true
	case p.fills(r):
		return true
	}
	p.refusedIn = round
	return false
}

// fills reports whether the buffer of a request can become full after the grant. It may use the free bytes, and those
// that other buffers return when they are full. The buffers that miss least come first.
func (p *pool) fills(r *waiter) bool {
	free := p.free - r.bytes
	missing := r.buffer.missing() - r.bytes
	for _, others := range p.levels {
		if missing <= free || others.missing > free {
			break
		}
		free += others.held
		if others.missing == r.buffer.missing() {
			free -= r.buffer.held
		}
	}
	return missing <= free
}

// add counts bytes that buffers hold which miss the same.
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

// set changes what the buffer holds and what it may hold, in all of its pools.
func (b *Buffer) set(held, maxBytes int64) {
	before, missed := b.held, b.missing()
	b.held, b.maxBytes = held, maxBytes
	for _, p := range b.budget.pools {
		p.add(missed, -before)
		p.add(b.missing(), held)
	}
}

// hold gives the buffer so many bytes more, or takes them back.
func (b *Buffer) hold(bytes int64) { b.set(b.held+bytes, b.maxBytes) }
