// Package admin is how administrators ask a running server: HTTP with JSON, and server-sent events.
//
// [Handler] answers what is below /api/v1 from a [Source], and a [Client] asks. [Listen] opens a Unix socket for the user of the process only, whose
// permissions are the only authentication. Package listener serves the same over TCP, to those who have a token or a certificate.
package admin

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

// socketMode lets the user of the process connect, and no other.
const socketMode = 0o600

// Listen opens the socket. It replaces one that a killed server has left, and none that a server answers.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	config := &net.ListenConfig{}
	l, err := config.Listen(ctx, "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) {
		if conn, dialErr := new(net.Dialer).DialContext(ctx, "unix", path); dialErr == nil {
			_ = conn.Close()
			return nil, err
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
		l, err = config.Listen(ctx, "unix", path)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}
