package admin

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// Listen replaces the stale socket of a killed server, but neither a socket in use nor another file.
func TestListen(t *testing.T) {
	dir := servicetest.SocketDir(t)
	path := filepath.Join(dir, "admin.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must.OK(t, err)
	left.SetUnlinkOnClose(false)
	if l, err := Listen(t.Context(), path); err == nil {
		t.Errorf("listening on %v, the socket of another server", l.Addr())
	}
	if conn, err := net.Dial("unix", path); err != nil {
		t.Error(err)
	} else {
		_ = conn.Close()
	}
	_ = left.Close()
	l, err := Listen(t.Context(), path)
	must.OK(t, err)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("unexpected mode of the socket %v: %v", info, err)
	}
	_ = l.Close()

	must.WriteFile(t, path, "listen: :21")
	if l, err := Listen(t.Context(), path); err == nil {
		t.Errorf("listening on %v, which replaced a file", l.Addr())
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "listen: :21" {
		t.Errorf("unexpected content of the file %q: %v", text, err)
	}
	if l, err := Listen(t.Context(), filepath.Join(path, "admin.sock")); err == nil {
		t.Errorf("listening on %v, below a file", l.Addr())
	}
}

// Listen creates a missing directory that only the user of the process can access.
func TestListenCreatesFolder(t *testing.T) {
	dir := servicetest.SocketDir(t)
	folder := filepath.Join(dir, "babelftp", "admin")
	l, err := Listen(t.Context(), filepath.Join(folder, "admin.sock"))
	must.OK(t, err)
	_ = l.Close()
	info, err := os.Stat(folder)
	must.OK(t, err)
	if mode := info.Mode().Perm(); mode != 0o700 {
		t.Errorf("got mode %v of the folder", mode)
	}
}

// The error for a server that is not running has the address and says what to do.
func TestNoServer(t *testing.T) {
	path := filepath.Join(servicetest.SocketDir(t), "admin.sock")
	_, err := NewClient(path).Server(t.Context())
	want := "cannot connect to the server at " + path + ": connect: no such file or directory: " +
		"start it, or name its admin_socket with --socket or --config"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
