//go:build !linux

package acceptance_test

import "syscall"

// dieWithParent has no means elsewhere: a test process that is killed leaves its processes running.
func dieWithParent() *syscall.SysProcAttr { return nil }
