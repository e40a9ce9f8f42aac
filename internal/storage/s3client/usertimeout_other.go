//go:build !linux

package s3client

import "syscall"

// setUserTimeout does nothing, because only Linux has the option.
func setUserTimeout(syscall.RawConn) error { return nil }
