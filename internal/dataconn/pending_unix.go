//go:build unix

package dataconn

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// pending says whether there are connections that a listener has not accepted yet.
func pending(l *net.TCPListener) bool {
	raw, err := l.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	err = raw.Control(func(fd uintptr) {
		err := error(unix.EINTR)
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		}
	})
	return err == nil && n > 0
}
