package s3client

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// userTimeout is how long the other end of a connection may acknowledge nothing (TCP_USER_TIMEOUT, RFC 5482). Without
// it a machine that has gone keeps a request waiting for a quarter of an hour.
const userTimeout = 30 * time.Second

// setUserTimeout sets the user timeout of a new socket.
func setUserTimeout(conn syscall.RawConn) error {
	var failed error
	err := conn.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
	})
	if err == nil {
		err = failed
	}
	return err
}
