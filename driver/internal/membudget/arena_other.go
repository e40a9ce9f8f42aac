//go:build !unix

package membudget

// mapMemory allocates memory on the Go heap.
func mapMemory(bytes int) ([]byte, error) { return make([]byte, bytes), nil }

// unmapMemory does nothing, because the garbage collector frees the memory.
func unmapMemory([]byte) {}

// forgetMemory does nothing.
func forgetMemory([]byte) {}
