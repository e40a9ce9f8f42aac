package membudget

// idleShare divides a budget: one part of so many is never reserved, so that uploads can begin.
const idleShare = 4

// A Revocable is a reservation of memory that no buffer needs at the moment, for bytes that the driver can fetch from S3 again.
//
// It never waits, and no buffer waits long for it. When a buffer has to wait, the budget revokes reservations. Their owners return the memory
// without waiting for a client. So a reservation cannot delay an upload, even if the client of the upload sends what it downloads by the
// reservation.
type Revocable struct {
	budget *Budget
	revoke func()

	// Guarded by the budget's mutex:
	held    int64
	revoked bool // it gets nothing more
}

// Reserve begins a reservation without memory, which its owner must close. A goroutine of its own calls revoke, which must return all of the
// memory.
func (b *Budget) Reserve(revoke func()) *Revocable {
	r := &Revocable{budget: b, revoke: revoke}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.revocable[r] = struct{}{}
	return r
}

// TryTake takes so many bytes. It returns false if a buffer waits for memory, if little is left, or if the reservation has its share already.
func (r *Revocable) TryTake(bytes int64) bool {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	idle := b.limit / idleShare
	share := (b.limit - idle) / int64(len(b.revocable))
	if len(b.waiting) > 0 || r.revoked || b.free-bytes < idle || r.held+bytes > share {
		return false
	}
	b.free -= bytes
	r.held += bytes
	return true
}

// Return gives bytes back that were taken.
func (r *Revocable) Return(bytes int64) {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += bytes
	r.held -= bytes
	b.serve()
}

// Close ends a reservation that has returned everything.
func (r *Revocable) Close() {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.revocable, r)
}

// revokeForFirst revokes as much as the first request lacks. The mutex is held.
func (b *Budget) revokeForFirst() {
	if len(b.waiting) == 0 {
		return
	}
	lacking := b.waiting[0].buffer.missing() - b.free
	for r := range b.revocable {
		if lacking <= 0 {
			return
		}
		if r.held == 0 {
			continue
		}
		if !r.revoked {
			r.revoked = true
			go r.revoke()
		}
		lacking -= r.held
	}
}
