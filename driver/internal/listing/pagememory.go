package listing

import "github.com/babelftp/babelftp/driver/internal/membudget"

const (
	// fewEntries is how many entries a page has if there is no memory: some 25 KiB, less than the buffers of its
	// connections.
	fewEntries = 100
)

// A pageMemory is the memory of a listing for the page that the client reads and the next one. A listing without
// memory continues with small pages, one after another, until other listings have ended. It is for one goroutine.
type pageMemory struct {
	memory *membudget.Share
	held   bool
}

// take reserves memory if there is some. It returns how many entries to request, 0 for a full page.
func (r *pageMemory) take() (limit int32) {
	r.held = r.held || r.memory.TryTake(pageBytes)
	if !r.held {
		return fewEntries
	}
	return 0
}

func (r *pageMemory) release() {
	if r.held {
		r.held = false
		r.memory.Return(pageBytes)
	}
}
