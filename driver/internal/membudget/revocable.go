package membudget

import "github.com/babelftp/babelftp/internal/base/panics"

// idleShare is the divisor of the part of the budget that is never reserved, so that uploads can begin.
const idleShare = 4

// A Revocable is a reservation of memory that buffers do not currently need, for data that the driver can fetch from S3
// again.
//
// It never waits for memory. If a buffer has to wait, the budget revokes reservations, and their owners return the
// memory without waiting for a client. A reservation therefore cannot delay an upload for long, even if the client
// uploads the data that it downloads with this reservation.
type Revocable struct {
	budget *Budget
	revoke func()

	// Guarded by the mutex of the budget:
	held    int64
	revoked bool // TryTake fails from now on
}

// Reserve returns an empty reservation, which the caller must close. The budget revokes it by calling revoke in a new
// goroutine. revoke must return all of its memory.
func (b *Budget) Reserve(revoke func()) *Revocable {
	r := &Revocable{budget: b, revoke: revoke}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.revocable[r] = struct{}{}
	return r
}

// TryTake adds bytes to the reservation. It returns false if a buffer is waiting for memory of others, if too little is
// left, or if the reservation has reached its share.
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

// reservationsOf returns the number of open reservations of a consumer.
func (m *memory) reservationsOf(c consumer) (n int64) {
	for r := range m.revocable {
		if r.budget.consumer == c {
			n++
		}
	}
	return n
}

// hold adds bytes, or returns them if bytes is negative.
func (r *Revocable) hold(bytes int64) {
	r.held += bytes
	r.budget.all.free -= bytes
	r.budget.lent.add(r.budget.consumer, bytes)
}

// Return returns bytes of the reservation.
func (r *Revocable) Return(bytes int64) {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	r.hold(-bytes)
	b.serve()
}

// Close ends the reservation. All bytes must have been returned.
func (r *Revocable) Close() {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.revocable, r)
}

// revokeForStarved revokes enough reservations for the starved buffer. The caller must hold m.mu.
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
