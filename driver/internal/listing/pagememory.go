package listing

import "github.com/babelftp/babelftp/driver/internal/membudget"

const (
	// fewEntries is the number of entries of a page if no memory is free. They use about 25 KiB, less than the buffers
	// of the connections.
	fewEntries = 100
)

// A pageMemory is the memory of a listing for the page being read and the next one. A listing that gets no memory
// continues with one small page after another until other listings have ended. It must be used by one goroutine only.
type pageMemory struct {
	memory *membudget.Share
	held   bool
}

// take reserves memory if some is free. It returns the number of entries to request, or 0 for a full page.
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
