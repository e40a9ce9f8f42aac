package server

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestIdleHeap holds memory, drops it, and looks whether the server gives it back once, and not while it is at work.
func TestIdleHeap(t *testing.T) {
	const load = 128 << 20
	collections := 0
	h := idleHeap{free: func() {
		collections++
		debug.FreeOSMemory()
	}}
	debug.FreeOSMemory()
	h.look()
	h.look() // nothing is known of the time before the first
	before := h.needed
	collections = 0

	content := make([][]byte, load>>10)
	for i := range content {
		content[i] = make([]byte, 1<<10)
	}
	h.look()
	if collections != 0 {
		t.Errorf("%d collections while there is work to do, want none", collections)
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
	if collections != 1 {
		t.Errorf("%d collections when all was done, want 1", collections)
	}
}
