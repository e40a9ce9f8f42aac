//go:build unix

package wire

import (
	"net"
	"syscall"
)

// keepUrgentData keeps urgent data in the stream. Clients send the end of ABOR as urgent data (RFC 959, 4.1.3;
// Synch in RFC 854). By default the kernel would remove a byte from the stream, which would then be missing from
// the command.
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
