package wire

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp asks the kernel whether the other side has closed or reset a connection, even if bytes before the end are
// still unread. On a busy machine the reading goroutine may notice that much later.
func hungUp(conn net.Conn) bool {
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return true
	}
	var ready int
	err = raw.Control(func(fd uintptr) {
		ready, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}, 0)
	})
	return err != nil || ready > 0 // an error means that this side has closed the connection
}
