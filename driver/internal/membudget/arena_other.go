//go:build !unix

package membudget

// mapMemory takes memory from the heap.
func mapMemory(bytes int) ([]byte, error) { return make([]byte, bytes), nil }

// unmapMemory leaves it to the garbage collector.
func unmapMemory([]byte) {}

// forgetMemory keeps it.
func forgetMemory([]byte) {}
