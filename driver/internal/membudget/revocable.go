package membudget

import "github.com/babelftp/babelftp/internal/base/panics"

// idleShare divides a budget: one part of so many is never reserved, so that uploads can begin.
const idleShare = 4

// A Revocable is a reservation of memory that no buffer needs at the moment, for bytes that the driver can fetch from
// S3 again.
//
// It never waits, and no buffer waits long for it. When a buffer has to wait, the budget revokes reservations. Their
// owners return the memory without waiting for a client. So a reservation cannot delay an upload, even if the client
// of the upload sends what it downloads by the reservation.
type Revocable struct {
	budget *Budget
	revoke func()

	// Guarded by the budget's mutex:
	held    int64
	revoked bool // it gets nothing more
}

// Reserve begins a reservation without memory, which its owner must close. A goroutine of its own calls revoke, which
// must return all of the memory.
func (b *Budget) Reserve(revoke func()) *Revocable {
	r := &Revocable{budget: b, revoke: revoke}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.revocable[r] = struct{}{}
	return r
}

// TryTake takes so many bytes. It returns false if a buffer waits for memory that others hold, if little is left, or
// if the reservation has its share already.
func (r *Revocable) TryTake(bytes int64) bool {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	idle := b.limit / idleShare
	share := (b.limit - idle) / b.reservationsOf(b.consumer)
	switch {
	case b.starved != nil || r.revoked || b.all.free-bytes < idle:
		return false
	case r.held+bytes > share || !b.lent.allows(b.limit-idle, b.consumer, bytes):
		return false
	}
	r.hold(bytes)
	return true
}

// reservationsOf is how many reservations of a consumer are open.
func (m *memory) reservationsOf(c consumer) (n int64) {
	for r := range m.revocable {
		if r.budget.consumer == c {
			n++
		}
	}
	return n
}

// hold takes so many bytes, or returns them.
func (r *Revocable) hold(bytes int64) {
	r.held += bytes
	r.budget.all.free -= bytes
	r.budget.lent.add(r.budget.consumer, bytes)
}

// Return gives bytes back that were taken.
func (r *Revocable) Return(bytes int64) {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	r.hold(-bytes)
	b.serve()
}

// Close ends a reservation that has returned everything.
func (r *Revocable) Close() {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.revocable, r)
}

// revokeForStarved revokes as much as the first buffer lacks that waits for memory which others hold. The mutex is
// held.
func (m *memory) revokeForStarved() {
	if m.starved == nil {
		return
	}
	lacking := m.starved.buffer.missing() - m.all.free
	for r := range m.revocable {
		if lacking <= 0 {
			return
		}
		if r.held == 0 {
			continue
		}
		if !r.revoked {
			r.revoked = true
			panics.Go(r.revoke)
		}
		lacking -= r.held
	}
}
