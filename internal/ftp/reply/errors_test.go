package reply

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/i18n"
)

// Of two rows that fit, the first one answers, and no row is made for it: a client may have a thousand errors a second.
func TestForErrorMakesNothing(t *testing.T) {
	err := &fs.PathError{Op: "remove", Path: "in", Err: syscall.ENOTEMPTY} // which is fs.ErrExist too
	if made := testing.AllocsPerRun(10, func() {
		if code, id, _ := ForError(err); code != 550 || id != i18n.DirectoryNotEmpty {
			t.Errorf("%d %s", code, id)
		}
	}); made > 0 {
		t.Errorf("an error allocates %.0f times", made)
	}
}
