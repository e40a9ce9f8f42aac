package driver

const (
	// listingShare of a budget is what the pages of listings take beside it that are read, as one part of so many, and seenShare what
	// sessions remember of files. Nobody waits for either: an upload whose client reads a listing first would wait for itself.
	listingShare = 4
	seenShare    = 16

	// fewEntries is how many entries the pages of a listing have for which there is no room: some 25 KiB, less than the buffers of its
	// connections.
	fewEntries = 100

	// seenMemory is about what it takes to remember a file, in bytes.
	seenMemory = 512
)

// A pageRoom is the memory of a listing for the page that is read and the one that follows. A listing without goes on with small pages,
// one after another, until others have ended. It is for one goroutine.
type pageRoom struct {
	budget *Budget
	held   bool
}

// take takes the memory if there is some, and returns how many entries to ask for: 0 for as many as S3 puts into a page.
func (r *pageRoom) take() (limit int32) {
	r.held = r.held || r.budget.addListing()
	if !r.held {
		return fewEntries
	}
	return 0
}

func (r *pageRoom) release() {
	if r.held {
		r.held = false
		r.budget.removeListing()
	}
}

// addListing enters a listing with large pages, or returns false where there are too many.
func (b *Budget) addListing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if (b.listings+1)*pageMemory > b.limit/listingShare {
		return false
	}
	b.listings++
	return true
}

func (b *Budget) removeListing() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listings--
}

// addSeen enters a file that is remembered, or returns false where there are too many.
func (b *Budget) addSeen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if (b.seen+1)*seenMemory > b.limit/seenShare {
		return false
	}
	b.seen++
	return true
}

func (b *Budget) removeSeen(files int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen -= int64(files)
}
