//go:build !linux

package s3test

import "syscall"

// dieWithParent has no means elsewhere: a test process that is killed leaves its servers running.
func dieWithParent() *syscall.SysProcAttr { return nil }
