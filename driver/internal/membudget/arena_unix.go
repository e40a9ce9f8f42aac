//go:build unix

package membudget

import "golang.org/x/sys/unix"

// mapMemory maps memory. The system allocates it when it is written to.
func mapMemory(bytes int) ([]byte, error) {
	return unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

// unmapMemory unmaps memory of mapMemory.
func unmapMemory(memory []byte) { _ = unix.Munmap(memory) } // cannot fail for a mapped slab

// forgetMemory returns memory to the system until it is written to again. The content is lost. It is only a hint, so
// errors are ignored.
func forgetMemory(memory []byte) { _ = unix.Madvise(memory, unix.MADV_DONTNEED) }
