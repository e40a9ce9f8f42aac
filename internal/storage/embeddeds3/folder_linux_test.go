package embeddeds3

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

func TestFolderWithoutAttributes(t *testing.T) {
	file, err := os.Open("/proc/self/status") // a file system without them on every Linux
	must.OK(t, err)
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	err = checkAttributes(file)
	if !errors.Is(err, syscall.ENOTSUP) || !strings.Contains(err.Error(), "use a folder on ext4") {
		t.Errorf("unexpected error: %v", err)
	}
}
