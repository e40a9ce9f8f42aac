//go:build !linux

package dataconn

// runQueue does not know where the kernel cannot be asked.
func runQueue() (tasks, processors int) { return 0, 1 }
