package listing

import "github.com/babelftp/babelftp/driver/internal/membudget"

const (
	// fewEntries is how many entries the pages of a listing have for which there is no room: some 25 KiB, less than the buffers of its
	// connections.
	fewEntries = 100
)

// A room is the memory of a listing for the page that is read and the one that follows. A listing without memory continues with small pages,
// one after another, until others have ended. It is for one goroutine.
type room struct {
	memory *membudget.Share
	held   bool
}

// take takes the memory if there is some, and returns how many entries to ask for: 0 for as many as S3 puts into a page.
func (r *room) take() (limit int32) {
	r.held = r.held || r.memory.TryTake(pageBytes)
	if !r.held {
		return fewEntries
	}
	return 0
}

func (r *room) release() {
	if r.held {
		r.held = false
		r.memory.Return(pageBytes)
	}
}
