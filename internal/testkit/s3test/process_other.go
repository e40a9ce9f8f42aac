//go:build !linux

package s3test

import "syscall"

// dieWithParent does nothing on these systems. If the test process is killed, its servers keep running.
func dieWithParent() *syscall.SysProcAttr { return nil }
