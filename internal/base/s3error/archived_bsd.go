//go:build freebsd || openbsd || dragonfly

package s3error

import "syscall"

// Archived is the kind of error for an object that S3 must restore before it can be read. These systems have no
// ENODATA.
const Archived = syscall.ENOATTR
