//go:build !freebsd && !openbsd && !dragonfly

package s3error

import "syscall"

// Archived is the kind of an object that S3 must restore before its bytes can be read.
const Archived = syscall.ENODATA
