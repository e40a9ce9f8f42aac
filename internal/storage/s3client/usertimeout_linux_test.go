package s3client

import (
	"log/slog"
	"syscall"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"golang.org/x/sys/unix"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

func TestUserTimeout(t *testing.T) {
	l := must.Listen(t)
	cfg, err := LoadEnvironment(t.Context(), slog.New(slog.DiscardHandler))
	must.OK(t, err)
	conn, err := cfg.HTTPClient.(*awshttp.BuildableClient).GetTransport().DialContext(
		t.Context(), "tcp", l.Addr().String())
	must.OK(t, err)
	defer conn.Close()
	raw, err := conn.(syscall.Conn).SyscallConn()
	must.OK(t, err)
	if err := raw.Control(func(fd uintptr) {
		got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		if want := userTimeout; err != nil || time.Duration(got)*time.Millisecond != want {
			t.Errorf("got user timeout %d ms, %v; want %v", got, err, want)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
