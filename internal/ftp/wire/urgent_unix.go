//go:build unix

package wire

import (
	"net"
	"syscall"
)

// keepUrgentData leaves urgent data where it is in the stream. Clients send the
// end of ABOR as urgent data (RFC 959 4.1.3, RFC 854's Synch). A byte that the
// kernel takes out of the stream would be missing from the command.
func keepUrgentData(conn net.Conn) {
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_OOBINLINE, 1)
	})
}
