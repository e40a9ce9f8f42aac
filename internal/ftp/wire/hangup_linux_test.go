package wire

import (
	"net"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

func TestHungUp(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(t *testing.T, client, server *net.TCPConn)
		want bool
	}{
		{"open", func(*testing.T, *net.TCPConn, *net.TCPConn) {}, false},
		{"with-commands-to-read", func(t *testing.T, client, _ *net.TCPConn) { send(t, client, "NOOP\r\n") }, false},
		{"closed", func(_ *testing.T, client, _ *net.TCPConn) { client.Close() }, true},
		{"closed-behind-a-command", func(t *testing.T, client, _ *net.TCPConn) {
			send(t, client, "NOOP\r\n")
			client.Close()
		}, true},
		{"reset", func(t *testing.T, client, server *net.TCPConn) {
			send(t, server, "220 Ready.\r\n") // the client leaves it unread
			client.Close()
		}, true},
		{"closed-on-this-side", func(_ *testing.T, _, server *net.TCPConn) { server.Close() }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			listener := must.Listen(t)
			client := must.Dial(t, listener.Addr().String())
			server, err := listener.Accept()
			must.OK(t, err)
			defer server.Close()
			tt.end(t, client.(*net.TCPConn), server.(*net.TCPConn))
			deadline := time.Now().Add(time.Minute)
			for hungUp(server) != tt.want {
				if time.Now().After(deadline) {
					t.Fatalf("hungUp() = %v", !tt.want)
				}
			}
		})
	}
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	must.Write(t, conn, text)
}
