package server

import (
	"context"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

const (
	// heapInterval is the time between two checks for unused memory.
	heapInterval = 5 * time.Second

	// If more than 1/busyShare of the heap is allocated within a heapInterval, the server is busy, and returning memory
	// would cost more than it saves.
	busyShare = 4

	// minSpare is the minimum of unused bytes that is worth a garbage collection.
	minSpare = 16 << 20
)

// An idleHeap returns memory to the operating system after a load. The Go runtime does that too, but takes minutes: an
// idle process collects garbage every two minutes, and until then garbage counts as used.
type idleHeap struct {
	use       func() (held, allocated uint64) // heapUse
	free      func()                          // debug.FreeOSMemory
	allocated uint64                          // total bytes allocated at the last check
	needed    uint64                          // bytes held after the last collection, or the minimum since
}

// keepIdleHeap regularly returns unused memory until ctx ends.
func keepIdleHeap(ctx context.Context) {
	h := idleHeap{use: heapUse, free: debug.FreeOSMemory}
	ticker := time.NewTicker(heapInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		h.check()
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// check returns memory if little was allocated since the last check, and much more is held than was needed.
func (h *idleHeap) check() {
	held, allocated := h.use()
	fresh := allocated - h.allocated
	h.allocated, h.needed = allocated, min(h.needed, held)
	if fresh > held/busyShare || held < h.needed+max(h.needed/2, minSpare) {
		return
	}
	h.free()
	h.needed, _ = h.use()
}

// heapUse returns the bytes that the runtime holds from the operating system, and the total of allocated bytes.
func heapUse() (held, allocated uint64) {
	samples := []runtimemetrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
	}
	runtimemetrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64(), samples[2].Value.Uint64()
}
