package server

import (
	"log/slog"
	"net"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// Control connections send TCP keep-alive packets. Load balancers drop idle connections, such as connections of clients
// that wait for a long transfer. The Kubernetes guide documents the interval.
func TestKeepAlive(t *testing.T) {
	const seconds = 15
	l, err := listenTCP(t.Context(), "listen", "127.0.0.1:0", slog.New(slog.DiscardHandler))
	must.OK(t, err)
	defer l.Close()
	must.Dial(t, l.Addr().String())
	conn, err := l.Accept()
	must.OK(t, err)
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	must.OK(t, err)
	for _, option := range []struct{ level, name, want int }{
		{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, seconds},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, seconds},
	} {
		var got int
		var failed error
		err := raw.Control(func(fd uintptr) { got, failed = syscall.GetsockoptInt(int(fd), option.level, option.name) })
		if err != nil || failed != nil || got != option.want {
			t.Errorf("option %d: got %d, %v, %v; want %d", option.name, got, err, failed, option.want)
		}
	}
}
