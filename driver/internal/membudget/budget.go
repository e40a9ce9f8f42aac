// Package membudget limits the memory of transfers and listings to a configured number of bytes, and shares it fairly
// between users and tenants.
//
// A process has one [Budget]. [Budget.For] returns the budget of a user, which is a member of a group, the tenant. A
// quarter of the memory is always left for other groups. There are three kinds of memory:
//
//   - A [Buffer] collects the bytes of a part of an upload. It waits until memory is free.
//   - A [Revocable] reservation never waits, but the budget revokes it when a buffer waits. It is for data that can be
//     fetched from S3 again, such as the chunks that a download prefetches.
//   - A [Share] is a small amount of memory in addition to the budget, for data that cannot wait for transfers, such as
//     the pages of listings.
//
// For example, an upload fills and sends a part like this:
//
//	part := budget.For("acme", "alice").Buffer(8 << 20)
//	err := part.FillFrom(ctx, conn)
//	...
//	part.Seal()
//	send(part.Body())
//	part.Release()
package membudget

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// BlockSize is the size of a block in bytes. It is small enough for a thousand uploads to begin within 64 MiB, and
	// large enough for a read from a connection.
	BlockSize = 64 << 10

	// MinLimit is the minimum limit in bytes with which uploads work: the minimum part size of S3.
	MinLimit = 5 << 20
)

// A Block is the unit of allocation.
type Block = [BlockSize]byte

// A Budget limits the memory in which uploads collect their parts. All file systems of a process share one.
//
// A part gets memory as its bytes arrive, and doubles its memory each time. A small file therefore uses little memory,
// and an idle upload not much more than it has received. If no memory is free, parts wait. Memory goes to the tenant
// and then to the user with the least memory. Among the parts of a user, it goes to those that already have some, the
// oldest first.
//
// Parts that have memory and wait for more could block each other. To prevent this, a pool grants memory only if all
// parts can still become full one after another. This is Dijkstra's banker's algorithm; the size of a part is its
// maximum demand.
//
// A part counts in three pools: the pool of its member, the pool of its group and the pool of all. It must not be
// larger than the smallest of them ([Budget.Share]), or it could take memory beyond the share of its owner. In each
// pool, the part that needs the least additional memory can always become full. The part that needs the least of all
// parts is this part in each of its pools, so there is always a part that can proceed.
//
// If a part needs memory, the budget first revokes reservations. If that is not enough, the part waits, and TCP slows
// down its client. A part is never sent early to free its memory, because S3 accepts no parts below 5 MiB except the
// last one.
type Budget struct {
	*memory
	consumer consumer
	pools    []*pool // in which its buffers count: member, group, all

	Listings  Share // for pages of listings
	transfers Share // for large transfer buffers
	first     Share // for the first block of each part, so that small files need not wait
}

// memory is shared by all budgets of a process.
type memory struct {
	limit        int64
	arena        *arena
	transferPool sync.Pool // a pool of *[transferSize]byte

	mu        sync.Mutex
	all       *pool
	groups    map[string]*pool
	members   map[consumer]*pool // never removed, because their number is limited by the number of users
	queue     queue
	round     uint64  // number of calls of serve
	starved   *waiter // the first one that waits for memory of others, or nil
	revocable map[*Revocable]struct{}
	lent      holdings // memory of reservations

	waits    atomic.Int64 // number of waits
	waitedNs atomic.Int64 // total duration of ended waits in nanoseconds
}

// Waits counts the waits of buffers for memory.
type Waits struct {
	Waiting int           // buffers that are waiting now
	Total   int64         // number of waits so far
	Time    time.Duration // total duration of ended waits
}

// Waits returns the current counts.
func (m *memory) Waits() Waits {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Waits{Waiting: m.queue.waiting, Total: m.waits.Load(), Time: time.Duration(m.waitedNs.Load())}
}

// A waiter is a buffer that waits for more memory.
type waiter struct {
	buffer  *Buffer
	bytes   int64
	ready   chan struct{} // closed when the buffer has the bytes
	arrival int64         // sequence number
	queued  bool          // is in the queue
}

// New returns a budget of the given number of bytes, rounded down to whole blocks. Shares come on top. Below
// [MinLimit], uploads do not work.
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
		round:        1, // differs from pool.refusedIn
	}
	return &Budget{
		memory:    m,
		pools:     []*pool{m.all},
		Listings:  newShare(limit / listingShare),
		transfers: newShare(limit / transferShare),
		first:     newShare(max(limit/firstShare, minFirstShare)),
	}
}

// For returns the budget of a member of a group. A group may hold at most three quarters of the memory, and a member at
// most three quarters of that. Both may always hold [MinLimit], so that uploads work even with the smallest budget.
func (b *Budget) For(group, member string) *Budget {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ofGroup := consumer{group, member}, threeQuarters(b.limit)
	minimum := min(MinLimit, b.limit)
	return &Budget{
		memory: b.memory, consumer: c,
		pools: []*pool{poolOf(b.members, c, max(minimum, threeQuarters(ofGroup))),
			poolOf(b.groups, group, max(minimum, ofGroup)), b.all},
		Listings: b.Listings.of(c), transfers: b.transfers.of(c), first: b.first.of(c),
	}
}

// poolOf returns the pool of a key. If it does not exist, poolOf creates it with the given limit.
func poolOf[K comparable](pools map[K]*pool, key K, limit int64) *pool {
	p := pools[key]
	if p == nil {
		p = newPool(limit)
		pools[key] = p
	}
	return p
}

// Share returns the number of bytes that all buffers of this budget together may hold. It is also the maximum size of a
// buffer.
func (b *Budget) Share() int64 { return b.pools[0].limit / BlockSize * BlockSize }

// Limit returns the limit in bytes for all members.
func (m *memory) Limit() int64 { return m.limit }

// Used returns the number of bytes that buffers and reservations of all members hold.
func (m *memory) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.limit - m.all.free
}

// IsContended reports whether an upload waits for memory that uploads of this member hold or may get.
func (b *Budget) IsContended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.pools, func(p *pool) bool { return p.hasRefused(b.round) })
}

// Reservations returns the number of open reservations.
func (m *memory) Reservations() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.revocable)
}

// Block returns a block with arbitrary content. The caller must account for it with a buffer or a reservation.
func (m *memory) Block() *Block { return m.arena.get() }

// Recycle returns a block to the arena.
func (m *memory) Recycle(block *Block) { m.arena.put(block) }

// Buffer returns an empty buffer for size bytes, but at most for [Budget.Share].
func (b *Budget) Buffer(size int64) *Buffer {
	size = min(size, b.Share())
	return &Buffer{budget: b, size: size, maxBytes: (size + BlockSize - 1) / BlockSize * BlockSize}
}

// acquire waits until the buffer has the given number of additional bytes.
func (m *memory) acquire(ctx context.Context, buffer *Buffer, bytes int64) error {
	w := &waiter{buffer: buffer, bytes: bytes, ready: make(chan struct{})}
	m.mu.Lock()
	m.queue.add(w)
	m.serve()
	m.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	default:
	}
	m.waits.Add(1)
	defer func(begin time.Time) { m.waitedNs.Add(int64(time.Since(begin))) }(time.Now())
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.queued {
		m.queue.remove(w)
	} else {
		buffer.hold(-bytes) // the memory was granted in the meantime
	}
	m.serve() // others may have waited behind this buffer
	return context.Cause(ctx)
}

// seal records that a buffer needs no more memory. The buffer keeps its memory until release.
func (m *memory) seal(buffer *Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	buffer.set(buffer.held, buffer.held)
	m.serve()
}

// release takes back the memory of a buffer.
func (m *memory) release(buffer *Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	buffer.set(0, 0)
	m.serve()
}

// serve grants memory to the waiting buffers for which that is safe in all of their pools. If a pool has refused a
// buffer, it grants nothing to later buffers without memory, because otherwise a series of small files could starve a
// large part. A buffer that waits only for the pool of its group or member does not hold up other groups or members.
func (m *memory) serve() {
	m.round++
	m.starved = nil
	for _, l := range m.queue.order() {
		l.begun = slices.DeleteFunc(l.begun, m.grant)
		granted := 0
		for granted < len(l.fresh) && m.grant(l.fresh[granted]) { // a pool that refuses one refuses all after it
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

// grant gives a buffer the memory that it waits for, if that is safe, and reports whether it did.
func (m *memory) grant(w *waiter) bool {
	if p := w.refusedBy(m.round); p != nil {
		if p == m.all && m.starved == nil {
			m.starved = w
		}
		return false
	}
	m.queue.countRemoved(w)
	w.buffer.hold(w.bytes)
	close(w.ready)
	return true
}

// refusedBy returns the first pool that does not grant the memory, or nil if all grant it.
func (w *waiter) refusedBy(round uint64) *pool {
	for _, p := range w.buffer.budget.pools {
		if !p.grants(w, round) {
			return p
		}
	}
	return nil
}
