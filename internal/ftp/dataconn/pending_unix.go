//go:build unix

package dataconn

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// maxBacklog is used if the kernel does not report the number of waiting connections. It is larger than the
// backlog of any listener in Go.
const maxBacklog = 1 << 16

// pending returns the number of connections that a listener has not accepted yet. If the kernel only reports that
// there are some, it returns maxBacklog.
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
