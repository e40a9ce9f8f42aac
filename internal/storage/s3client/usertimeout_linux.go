package s3client

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// userTimeout limits how long the peer of a connection may leave sent data unacknowledged (TCP_USER_TIMEOUT, RFC 5482).
// Without it, a request to a machine that has vanished would wait for a quarter of an hour.
const userTimeout = 30 * time.Second

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
