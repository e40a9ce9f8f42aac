package driver

// unlentShare of a budget is never lent, as one part of so many, but waits for uploads that begin.
const unlentShare = 4

// A borrower takes memory of a budget that nobody needs just now, for what can be fetched from S3 again.
//
// It never waits, and it never keeps anybody waiting: when a part of an upload has to wait for memory, borrowers are asked for
// theirs, and give it back without waiting for a client. So a loan cannot be in the way of an upload, not even of one whose
// client sends what it receives from the borrower.
type borrower struct {
	budget *Budget
	recall func() // gives everything back; called by a goroutine of its own

	// Guarded by the budget's mutex:
	held     int64
	recalled bool // it gets nothing more
}

// borrower enters a borrower, who must leave.
func (b *Budget) borrower(recall func()) *borrower {
	l := &borrower{budget: b, recall: recall}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.borrowers[l] = struct{}{}
	return l
}

// take borrows so many bytes, or returns false: where somebody waits for memory, where little is left, and where the borrower
// has its share already.
func (l *borrower) take(bytes int64) bool {
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	unlent := b.limit / unlentShare
	share := (b.limit - unlent) / int64(len(b.borrowers))
	if len(b.waiting) > 0 || l.recalled || b.free-bytes < unlent || l.held+bytes > share {
		return false
	}
	b.free -= bytes
	l.held += bytes
	return true
}

// giveBack returns a part of what was taken.
func (l *borrower) giveBack(bytes int64) {
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += bytes
	l.held -= bytes
	b.serve()
}

// leave ends a borrower, who has given everything back.
func (l *borrower) leave() {
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.borrowers, l)
}

// recall asks borrowers for as much as whoever has waited longest lacks. The mutex is held.
func (b *Budget) recall() {
	if len(b.waiting) == 0 {
		return
	}
	lacking := b.waiting[0].buffer.missing() - b.free
	for l := range b.borrowers {
		if lacking <= 0 {
			return
		}
		if l.held == 0 {
			continue
		}
		if !l.recalled {
			l.recalled = true
			go l.recall()
		}
		lacking -= l.held
	}
}

// block returns memory of the size of a block. It counts when somebody holds it by a buffer or a borrower.
func (b *Budget) block() *[blockSize]byte { return b.blocks.get() }

// recycle keeps the memory of a block for another.
func (b *Budget) recycle(block *[blockSize]byte) { b.blocks.put(block) }
