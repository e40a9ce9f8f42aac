package reply

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/i18n"
)

// If two rows match, the first one counts. ForError does not allocate, because a client may cause a thousand
// errors per second.
func TestForErrorDoesNotAllocate(t *testing.T) {
	err := &fs.PathError{Op: "remove", Path: "in", Err: syscall.ENOTEMPTY} // also fs.ErrExist
	if made := testing.AllocsPerRun(10, func() {
		if code, id, _ := ForError(err); code != 550 || id != i18n.DirectoryNotEmpty {
			t.Errorf("got reply %d %s", code, id)
		}
	}); made > 0 {
		t.Errorf("an error allocates %.0f times", made)
	}
}
