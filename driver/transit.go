package driver

const (
	// transitSize is what a fast download reads at a time: with four times the memory of a block it spends a fifth less time in the
	// kernel.
	transitSize = 4 * blockSize

	// transitShare of a budget is what such downloads take beside it, as one part of so many. Others read by single blocks: a
	// thousand downloads shall not take as much as all uploads together.
	transitShare = 16
)

// A transit is the memory through which a download passes from S3 to its client. It does not count: there is one for each download.
type transit struct {
	budget *Budget
	small  *[blockSize]byte
	large  *[transitSize]byte
}

// room returns the memory for the next bytes, of which left are to come.
func (t *transit) room(left int64) []byte {
	if t.large == nil && left > blockSize {
		t.large = t.budget.largeTransit()
	}
	if t.large != nil {
		return t.large[:]
	}
	if t.small == nil {
		t.small = t.budget.block()
	}
	return t.small[:]
}

// hold takes over a block.
func (t *transit) hold(b *[blockSize]byte) {
	t.release()
	t.small = b
}

// release gives the memory back.
func (t *transit) release() {
	if t.large != nil {
		t.budget.returnTransit(t.large)
	}
	if t.small != nil {
		t.budget.recycle(t.small)
	}
	t.small, t.large = nil, nil
}

// largeTransit returns memory for a transit, or nil where too many have it.
func (b *Budget) largeTransit() *[transitSize]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if (b.transits+1)*transitSize > b.limit/transitShare {
		return nil
	}
	b.transits++
	return b.transitPool.Get().(*[transitSize]byte)
}

func (b *Budget) returnTransit(memory *[transitSize]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.transits--
	b.transitPool.Put(memory)
}
