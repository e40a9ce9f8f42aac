package admin

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// A socket that a killed server has left is replaced. One that a server answers stays, and so does another file.
func TestListen(t *testing.T) {
	dir, err := os.MkdirTemp("", "socket") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "admin.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if l, err := Listen(t.Context(), path); err == nil {
		t.Errorf("%v is the socket of another server", l.Addr())
	}
	if conn, err := net.Dial("unix", path); err != nil {
		t.Error(err)
	} else {
		_ = conn.Close()
	}
	_ = left.Close()
	l, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()

	if err := os.WriteFile(path, []byte("listen: :21"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := Listen(t.Context(), path); err == nil {
		t.Errorf("%v takes the place of a file", l.Addr())
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "listen: :21" {
		t.Errorf("the file holds %q: %v", text, err)
	}
	if l, err := Listen(t.Context(), filepath.Join(dir, "missing", "admin.sock")); err == nil {
		t.Errorf("%v is in no directory", l.Addr())
	}
}
