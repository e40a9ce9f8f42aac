package server

import (
	"testing"
)

// The server gives back once what it held for a load, and not while it is at work.
func TestIdleHeap(t *testing.T) {
	const mib = 1 << 20
	var held, allocated uint64
	collections := 0
	h := idleHeap{
		use:  func() (uint64, uint64) { return held, allocated },
		free: func() { collections++; held = 20 * mib },
	}
	for i, look := range []struct {
		held, fresh uint64 // what is held, and was allocated since the look before
		collections int    // so far
	}{
		{20 * mib, 20 * mib, 0},
		{20 * mib, 0, 1},          // nothing is known of the time before
		{150 * mib, 130 * mib, 1}, // there is work to do
		{150 * mib, 40 * mib, 1},
		{150 * mib, 30 * mib, 2},
		{20 * mib, mib, 2},
		{35 * mib, mib, 2}, // too little is spare
		{36 * mib, mib, 3},
	} {
		held, allocated = look.held, allocated+look.fresh
		if h.look(); collections != look.collections {
			t.Errorf("look %d: %d collections, want %d", i, collections, look.collections)
		}
	}
}
