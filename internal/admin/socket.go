package admin

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// socketMode lets the user of the process connect, and no other. folderMode is that of a folder which Listen makes.
const socketMode, folderMode = 0o600, 0o700

// Listen opens the socket, and makes the folder if it is missing. It replaces a socket that a killed server has left,
// and neither one that a server answers nor another file.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), folderMode); err != nil {
		return nil, err
	}
	config := &net.ListenConfig{}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil && isLeft(ctx, path) {
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

// isLeft tells whether a socket is there that no server answers. The errors of a socket that is in use differ between
// systems, so none is looked at.
func isLeft(ctx context.Context, path string) bool {
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeSocket {
		return false
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
	}
	return err != nil && !errors.Is(err, fs.ErrPermission)
}
