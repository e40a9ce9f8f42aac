package servicetest

import (
	"os"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// SocketDir creates a temporary directory with a name that is short enough for Unix sockets.
func SocketDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "socket")
	must.OK(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
