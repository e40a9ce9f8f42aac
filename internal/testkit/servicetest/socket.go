package servicetest

import (
	"os"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// SocketDir is a folder until the end of the test. Its name is as short as those of sockets must be.
func SocketDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "socket")
	must.OK(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
