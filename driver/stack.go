package driver

import "runtime"

// requestStack is what a request takes of a goroutine's stack at most, in bytes.
const requestStack = 40 << 10

// growStack lets the stack of a goroutine grow which is about to make a request. It would grow all the same, but step by step in the
// depths of the SDK's middleware, and each time a hundred frames would be moved: this is a tenth of what a small file takes of the
// processor.
//
//go:noinline
func growStack() {
	var room [requestStack]byte
	runtime.KeepAlive(&room)
}
