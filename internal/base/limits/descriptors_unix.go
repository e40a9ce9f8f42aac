//go:build unix

package limits

import "golang.org/x/sys/unix"

// limit returns the maximum number of open descriptors of the process (RLIMIT_NOFILE).
func limit() (uint64, bool) {
	var l unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	return uint64(l.Cur), err == nil //nolint:unconvert // FreeBSD has an int64
}
