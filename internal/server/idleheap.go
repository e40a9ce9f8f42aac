package server

import (
	"context"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

const (
	// heapInterval is how often the server looks whether it holds memory that it no longer needs.
	heapInterval = 5 * time.Second

	// busyShare of what the heap holds is allocated within a heapInterval where there is work to do, as one part of
	// so many. To give memory back would then cost more than it saves.
	busyShare = 4

	// minSpare is the least memory in bytes that is worth a collection.
	minSpare = 16 << 20
)

// An idleHeap gives memory back to the system after a load. The Go runtime does that by itself, but takes minutes:
// without new work it collects every two minutes, and until then counts garbage as in use.
type idleHeap struct {
	use       func() (held, allocated uint64) // heapUse
	free      func()                          // debug.FreeOSMemory
	allocated uint64                          // bytes in all, at the last look
	needed    uint64                          // bytes held after the last collection, or less where less was held since
}

// keepIdleHeap looks again and again whether memory can be given back, until ctx ends.
func keepIdleHeap(ctx context.Context) {
	h := idleHeap{use: heapUse, free: debug.FreeOSMemory}
	ticker := time.NewTicker(heapInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		h.look()
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// look gives memory back if little was allocated since the last look, and much more is held than was needed.
func (h *idleHeap) look() {
	held, allocated := h.use()
	fresh := allocated - h.allocated
	h.allocated, h.needed = allocated, min(h.needed, held)
	if fresh > held/busyShare || held < h.needed+max(h.needed/2, minSpare) {
		return
	}
	h.free()
	h.needed, _ = h.use()
}

// heapUse is how many bytes of memory the runtime has of the system, and how many it has allocated since the start.
func heapUse() (held, allocated uint64) {
	samples := []runtimemetrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
	}
	runtimemetrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64(), samples[2].Value.Uint64()
}
