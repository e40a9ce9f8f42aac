package server

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestIdleHeap holds memory, drops it, and looks whether the server gives it back once, and not while it is at work.
func TestIdleHeap(t *testing.T) {
	const load = 128 << 20
	forced := func() uint32 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.NumForcedGC
	}
	debug.FreeOSMemory()
	var h idleHeap
	h.look()
	h.look() // nothing is known of the time before the first
	before, collections := h.needed, forced()

	content := make([][]byte, load>>10)
	for i := range content {
		content[i] = make([]byte, 1<<10)
	}
	h.look()
	if n := forced() - collections; n != 0 {
		t.Errorf("%d collections while there is work to do, want none", n)
	}
	if held, _ := heapUse(); held < before+load {
		t.Fatalf("%d bytes are held after a load of %d, and %d before it", held, load, before)
	}
	runtime.KeepAlive(content)
	for range 3 {
		h.look()
	}
	if held, _ := heapUse(); held > before+load/4 {
		t.Errorf("%d bytes are held when all is done, and %d before the load", held, before)
	}
	if n := forced() - collections; n != 1 {
		t.Errorf("%d collections when all was done, want 1", n)
	}
}
