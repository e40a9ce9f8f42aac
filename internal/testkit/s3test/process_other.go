//go:build !linux

package s3test

import "syscall"

// dieWithParent does nothing on these systems. A killed test process leaves its servers running.
func dieWithParent() *syscall.SysProcAttr { return nil }
