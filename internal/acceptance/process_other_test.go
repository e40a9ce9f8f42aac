//go:build !linux

package acceptance_test

import "syscall"

// dieWithParent does nothing on these systems: if the test process is killed, its processes keep running.
func dieWithParent() *syscall.SysProcAttr { return nil }
