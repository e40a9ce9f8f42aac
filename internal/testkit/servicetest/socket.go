package servicetest

import (
	"os"
	"testing"
)

// SocketDir is a folder until the end of the test. Its name is as short as those of sockets must be.
func SocketDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "socket")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
