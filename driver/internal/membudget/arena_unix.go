//go:build unix

package membudget

import "golang.org/x/sys/unix"

// mapMemory asks the system for memory, which it has once it is written to.
func mapMemory(bytes int) ([]byte, error) {
	return unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

// unmapMemory gives it back.
func unmapMemory(memory []byte) { _ = unix.Munmap(memory) } // it is what was mapped

// forgetMemory lets the system use it for something else until it is written to again. The bytes are lost.
func forgetMemory(memory []byte) { _ = unix.Madvise(memory, unix.MADV_DONTNEED) } // it may refuse
