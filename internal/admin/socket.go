package admin

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// socketMode lets only the user of the process connect. folderMode is the mode of a directory that Listen
// creates.
const socketMode, folderMode = 0o600, 0o700

// Listen opens the socket and creates its directory if it is missing. It replaces a stale socket left by a
// server that was killed, but never a socket that a server listens on, or another file.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), folderMode); err != nil {
		return nil, err
	}
	config := &net.ListenConfig{}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil && isStale(ctx, path) {
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

// isStale reports whether path is a socket that no server listens on. It ignores the error of the failed
// listen, because the errors for a socket in use differ between systems.
func isStale(ctx context.Context, path string) bool {
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeSocket {
		return false
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
	}
	return err != nil && !errors.Is(err, fs.ErrPermission)
}
