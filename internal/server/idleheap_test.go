package server

import (
	"testing"
)

// The server returns memory once after a load, and not while it is busy.
func TestIdleHeap(t *testing.T) {
	const mib = 1 << 20
	var held, allocated uint64
	collections := 0
	h := idleHeap{
		use:  func() (uint64, uint64) { return held, allocated },
		free: func() { collections++; held = 20 * mib },
	}
	for i, look := range []struct {
		held, fresh uint64 // bytes held, and bytes allocated since the last check
		collections int    // total so far
	}{
		{20 * mib, 20 * mib, 0},
		{20 * mib, 0, 1},          // nothing is known about the time before
		{150 * mib, 130 * mib, 1}, // the server is busy
		{150 * mib, 40 * mib, 1},
		{150 * mib, 30 * mib, 2},
		{20 * mib, mib, 2},
		{35 * mib, mib, 2}, // too little to return
		{36 * mib, mib, 3},
	} {
		held, allocated = look.held, allocated+look.fresh
		if h.check(); collections != look.collections {
			t.Errorf("check %d: got %d collections, want %d", i, collections, look.collections)
		}
	}
}
