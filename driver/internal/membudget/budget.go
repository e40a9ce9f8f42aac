// Package membudget bounds the memory of transfers and listings by one configured number of bytes, and shares it
// fairly between users and tenants.
//
// Uploads collect each part in a [Buffer], which waits for memory. What can be fetched from S3 again, such as the
// chunks that a download prefetches, lies in a [Revocable] reservation: the budget revokes it when a buffer waits.
// Small memory for which no transfer can wait comes out of a [Share], in addition to the budget.
//
// [Budget.For] returns the budget for a member of a group. Whatever the sessions of one group do, a quarter of the
// budget is left for others.
package membudget

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// BlockSize is the size of a block in bytes: as little as makes a thousand uploads begin within 64 MiB, and as
	// much as a read from a connection may bring.
	BlockSize = 64 << 10

	// MinLimit is the smallest limit in bytes with which uploads work: S3's smallest part.
	MinLimit = 5 << 20
)

// A Block is the unit of memory.
type Block = [BlockSize]byte

// A Budget bounds the memory in which uploads collect their parts. All file systems of a process share one.
//
// A part takes memory as its bytes come and doubles what it has. So a small file takes little, and an idle upload
// little more than came. Where no memory is left, parts wait. Memory goes first to the tenant and then to the user that
// hold least, and among the parts of a user to those that hold some, the oldest first. Parts that hold some and wait
// for more could wait for each other. So each pool gives memory only if an order remains in which all parts can become
// full, one after another. This is Dijkstra's banker's algorithm: the size of a part is its maximum demand.
//
// A part counts in the pool of its member, that of its group, and that of all. No part is larger than the smallest of
// them, [Budget.Share]: one that were would keep memory from others that no share of its owner bounds. In each of
// them, the part that misses least can always become full. The part that misses least of all is that one in each of
// its pools. So there is always a part that need not wait for others.
//
// Memory that a waiting part needs is first taken from what can be fetched again. Then the part waits, and TCP slows
// its client down. A part is never sent early to free its memory, because S3 takes no part below 5 MiB but the last
// one.
type Budget struct {
	*memory
	consumer consumer
	pools    []*pool // in which its buffers count, the smallest first and that of all last

	Listings  Share // the pages of listings that are read
	transfers Share // the larger transfer buffers
	first     Share // the first block of each part, so that a small file need not wait
}

// memory is what all budgets of a process have in common.
type memory struct {
	limit        int64
	arena        *arena
	transferPool sync.Pool // of *[transferSize]byte

	mu        sync.Mutex
	all       *pool
	groups    map[string]*pool
	members   map[consumer]*pool // they stay, because there are no more of them than users
	queue     queue
	round     uint64  // of serve
	starved   *waiter // the first that waits for memory which others hold, nil where there is none
	revocable map[*Revocable]struct{}
	lent      holdings // to reservations

	waits    atomic.Int64 // buffers that have waited
	waitedNs atomic.Int64 // nanoseconds, of those that have ended
}

// Waits is how buffers have waited for memory.
type Waits struct {
	Waiting int   // now
	Total   int64 // so far
	Time    time.Duration
}

// Waits returns how buffers have waited. The time is that of waits which have ended.
func (m *memory) Waits() Waits {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Waits{Waiting: m.queue.waiting, Total: m.waits.Load(), Time: time.Duration(m.waitedNs.Load())}
}

// A waiter is a buffer that waits for more memory.
type waiter struct {
	buffer  *Buffer
	bytes   int64
	ready   chan struct{} // closed when the buffer has them
	arrival int64         // how many came before it
	waits   bool          // it is in the queue
}

// New returns a budget of so many bytes, rounded down to whole blocks without shares. Below [MinLimit] no part fits.
func New(bytes int64) *Budget {
	limit := bytes / BlockSize * BlockSize
	m := &memory{
		limit:        limit,
		arena:        newArena(),
		transferPool: sync.Pool{New: func() any { return new([transferSize]byte) }},
		all:          newPool(limit),
		groups:       map[string]*pool{},
		members:      map[consumer]*pool{},
		queue:        queue{lanes: map[*pool]*lane{}},
		revocable:    map[*Revocable]struct{}{},
		round:        1, // no pool has refused a waiter in it
	}
	return &Budget{
		memory:    m,
		pools:     []*pool{m.all},
		Listings:  newShare(limit / listingShare),
		transfers: newShare(limit / transferShare),
		first:     newShare(max(limit/firstShare, minFirstShare)),
	}
}

// For returns the budget for a member of a group. A group holds at most three quarters of it, and a member at most
// three quarters of what its group may hold. Both may hold [MinLimit], so that uploads work in a budget that has room
// for no more.
func (b *Budget) For(group, member string) *Budget {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ofGroup := consumer{group, member}, fair(b.limit)
	least := min(MinLimit, b.limit)
	return &Budget{
		memory: b.memory, consumer: c,
		pools: []*pool{poolOf(b.members, c, max(least, fair(ofGroup))), poolOf(b.groups, group, max(least, ofGroup)),
			b.all},
		Listings: b.Listings.of(c), transfers: b.transfers.of(c), first: b.first.of(c),
	}
}

// poolOf returns the pool of a key, of limit bytes if there was none.
func poolOf[K comparable](pools map[K]*pool, key K, limit int64) *pool {
	p := pools[key]
	if p == nil {
		p = newPool(limit)
		pools[key] = p
	}
	return p
}

// Share returns how many bytes the buffers of this budget may hold together: those of one member, or of all. No
// buffer is larger.
func (b *Budget) Share() int64 { return b.pools[0].limit / BlockSize * BlockSize }

// Limit returns how many bytes the budget has.
func (m *memory) Limit() int64 { return m.limit }

// Used returns how many bytes buffers and reservations hold.
func (m *memory) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.limit - m.all.free
}

// Scarce tells whether an upload waits for memory that uploads of this member hold, or may hold.
func (b *Budget) Scarce() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.pools, func(p *pool) bool { return p.refused(b.round) })
}

// Reservations is how many reservations are open.
func (m *memory) Reservations() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.revocable)
}

// Block returns a block with arbitrary bytes. Its owner accounts for it by a buffer or a reservation.
func (m *memory) Block() *Block { return m.arena.get() }

// Recycle takes a block back.
func (m *memory) Recycle(block *Block) { m.arena.put(block) }

// Buffer returns a buffer, empty and without memory, for at most so many bytes, and no more than [Budget.Share].
func (b *Budget) Buffer(size int64) *Buffer {
	size = min(size, b.Share())
	return &Buffer{budget: b, size: size, maxBytes: (size + BlockSize - 1) / BlockSize * BlockSize}
}

// acquire waits until the buffer holds so many bytes more.
func (m *memory) acquire(ctx context.Context, buffer *Buffer, bytes int64) error {
	r := &waiter{buffer: buffer, bytes: bytes, ready: make(chan struct{})}
	m.mu.Lock()
	m.queue.add(r)
	m.serve()
	m.mu.Unlock()
	select {
	case <-r.ready:
		return nil
	default:
	}
	m.waits.Add(1)
	defer func(begin time.Time) { m.waitedNs.Add(int64(time.Since(begin))) }(time.Now())
	select {
	case <-r.ready:
		return nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.waits {
		m.queue.remove(r)
	} else {
		buffer.hold(-bytes) // it was granted in the meantime
	}
	m.serve() // who stood back for it
	return context.Cause(ctx)
}

// seal says that a buffer needs no more memory. It keeps its memory until release.
func (m *memory) seal(buffer *Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	buffer.set(buffer.held, buffer.held)
	m.serve()
}

// release takes back all that a buffer holds.
func (m *memory) release(buffer *Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	buffer.set(0, 0)
	m.serve()
}

// serve gives memory to the waiting buffers where that is safe in each of their pools. A buffer without memory
// overtakes no other one of a pool. Otherwise small files, one after another, could starve a large part.
//
// A buffer that waits for its own group or member keeps no others from overtaking it.
func (m *memory) serve() {
	m.round++
	m.starved = nil
	for _, l := range m.queue.order() {
		l.begun = slices.DeleteFunc(l.begun, m.grant)
		granted := 0
		for granted < len(l.fresh) && m.grant(l.fresh[granted]) { // what refuses one refuses those after it
			granted++
		}
		l.fresh = slices.Delete(l.fresh, 0, granted)
		m.queue.forget(l)
		if m.starved != nil && m.all.free == 0 {
			break
		}
	}
	m.revokeForStarved()
}

// grant gives a buffer the memory that it waits for, and reports whether that is safe.
func (m *memory) grant(w *waiter) bool {
	if p := w.refusedBy(m.round); p != nil {
		if p == m.all && m.starved == nil {
			m.starved = w
		}
		return false
	}
	m.queue.removed(w)
	w.buffer.hold(w.bytes)
	close(w.ready)
	return true
}

// refusedBy returns the first pool that does not have what a buffer waits for, nil if there is none.
func (r *waiter) refusedBy(round uint64) *pool {
	for _, p := range r.buffer.budget.pools {
		if !p.grants(r, round) {
			return p
		}
	}
	return nil
}
