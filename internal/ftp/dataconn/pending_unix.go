//go:build unix

package dataconn

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// maxBacklog is more connections than wait at a listener of Go, where the kernel tells no number.
const maxBacklog = 1 << 16

// pending is how many connections a listener has not accepted yet. Where the kernel tells no number, it is maxBacklog
// for any.
func pending(l *net.TCPListener) int {
	raw, err := l.SyscallConn()
	if err != nil {
		return 0
	}
	count := 0
	err = raw.Control(func(fd uintptr) {
		n, err := 0, error(unix.EINTR)
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		}
		if err == nil && n > 0 {
			count = backlog(int(fd))
		}
	})
	if err != nil {
		return 0
	}
	return count
}
