package server

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// firstInherited is the descriptor of the first socket that systemd hands over (sd_listen_fds(3)).
const firstInherited = 3

// An inheritedListener uses a socket that systemd keeps open. Clients that connect after it is closed wait for the
// next process.
type inheritedListener struct{ *net.TCPListener }

// inherited returns the socket that systemd passed under the name of a configuration key, or nil. The variables
// LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES are documented in sd_listen_fds_with_names(3).
func inherited(key string, getenv func(string) string, first int) (net.Listener, error) {
	count, err := strconv.Atoi(getenv("LISTEN_FDS"))
	if err != nil || getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	i := slices.Index(strings.Split(getenv("LISTEN_FDNAMES"), ":"), key)
	if i < 0 || i >= count {
		return nil, nil
	}
	file := os.NewFile(uintptr(first+i), key)
	defer file.Close() // FileListener duplicates the descriptor
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		_ = l.Close()
		return nil, fmt.Errorf("invalid systemd socket of type %s: want TCP", l.Addr().Network())
	}
	return inheritedListener{tcp}, nil
}
