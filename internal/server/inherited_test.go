//go:build unix

package server

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// descriptor returns the descriptor of a socket, which inherited closes.
func descriptor(t *testing.T, network, address string) (fd int, bound string) {
	t.Helper()
	l, err := net.Listen(network, address)
	must.OK(t, err)
	defer l.Close()
	file, err := l.(interface{ File() (*os.File, error) }).File()
	must.OK(t, err)
	defer file.Close()
	fd, err = syscall.Dup(int(file.Fd()))
	must.OK(t, err)
	return fd, l.Addr().String()
}

// The socket with the name of the key is found among those that systemd passes. If they are for another process or
// have other names, none is found.
func TestInherited(t *testing.T) {
	self := strconv.Itoa(os.Getpid())
	for name, tt := range map[string]struct {
		pid, names string
		count      int
		want       bool
	}{
		"only":            {self, "listen", 1, true},
		"second":          {self, "admin.listen:listen", 2, true},
		"another-process": {"1", "listen", 1, false},
		"another-name":    {self, "babelftp.socket", 1, false},
		"no-names":        {self, "", 1, false},
		"fewer-sockets":   {self, "admin.listen:listen", 1, false},
		"not-of-systemd":  {"", "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			fd, address := descriptor(t, "tcp", "127.0.0.1:0")
			first := fd
			if tt.names == "admin.listen:listen" {
				first--
			}
			env := map[string]string{"LISTEN_PID": tt.pid, "LISTEN_FDS": strconv.Itoa(tt.count),
				"LISTEN_FDNAMES": tt.names}
			l, err := inherited("listen", func(key string) string { return env[key] }, first)
			if err != nil || (l != nil) != tt.want {
				t.Fatalf("got %v, %v; want a listener: %t", l, err, tt.want)
			}
			if l == nil {
				_ = os.NewFile(uintptr(fd), "unused").Close()
				return
			}
			defer l.Close()
			if got := l.Addr().String(); got != address {
				t.Errorf("got listener on %s, want %s", got, address)
			}
			must.Dial(t, address)
			accepted, err := l.Accept()
			must.OK(t, err)
			_ = accepted.Close()
		})
	}
}

// A socket that is not a TCP socket is an error.
func TestInheritedOfAnotherKind(t *testing.T) {
	fd, _ := descriptor(t, "unix", filepath.Join(t.TempDir(), "socket"))
	env := map[string]string{"LISTEN_PID": strconv.Itoa(os.Getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "listen"}
	if l, err := inherited("listen", func(key string) string { return env[key] }, fd); err == nil {
		t.Errorf("got %v, which is not a TCP listener", l.Addr())
	}
}
