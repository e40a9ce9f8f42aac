//go:build unix

package limits

import "golang.org/x/sys/unix"

// limit is how many descriptors the process may have open now.
func limit() (uint64, bool) {
	var l unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	return uint64(l.Cur), err == nil //nolint:unconvert // FreeBSD has an int64
}
