package membudget

import (
	"cmp"
	"maps"
	"slices"
)

// A pool is the memory of some of the buffers: of a member, of a group, or of all.
type pool struct {
	limit int64
	free  int64

	buffers   map[*Buffer]struct{} // those that hold memory
	order     []*Buffer            // the same, those that miss least first; nil while it is not known
	refusedIn uint64               // the last round of serve in which the pool has refused a waiter
}

func newPool(limit int64) *pool {
	return &pool{limit: limit, free: limit, buffers: map[*Buffer]struct{}{}}
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

// fills reports whether the buffer of a request can become full after the grant. It may use the free bytes, and those that other buffers
// return when they are full. The buffers that miss least come first.
func (p *pool) fills(r *waiter) bool {
	if p.order == nil {
		p.order = slices.SortedFunc(maps.Keys(p.buffers), func(a, b *Buffer) int { return cmp.Compare(a.missing(), b.missing()) })
	}
	free := p.free - r.bytes
	missing := r.buffer.missing() - r.bytes
	for _, other := range p.order {
		if missing <= free || other.missing() > free {
			break
		}
		if other != r.buffer {
			free += other.held
		}
	}
	return missing <= free
}

// hold gives the buffer so many bytes more, or takes them back, in all of its pools.
func (b *Buffer) hold(bytes int64) {
	b.held += bytes
	for _, p := range b.pools {
		p.free -= bytes
		p.order = nil
		if b.held > 0 {
			p.buffers[b] = struct{}{}
		} else {
			delete(p.buffers, b)
		}
	}
}
