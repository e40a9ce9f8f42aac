package reload

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestLinkToAnotherFile checks that a symbolic link to another file counts as a change, even if both files have the
// same size and modification time.
func TestLinkToAnotherFile(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"one", "two"} {
		must.WriteFile(t, in(name), name)
		must.OK(t, os.Chtimes(in(name), time.Unix(1, 0), time.Unix(1, 0)))
	}
	link := func(name string) {
		t.Helper()
		must.OK(t, os.Symlink(name, in("next")))
		must.OK(t, os.Rename(in("next"), in("link")))
	}
	link("one")
	changes := 0
	v, err := Open(func() (string, error) {
		text, err := os.ReadFile(in("link"))
		return string(text), err
	}, func(error) { changes++ }, in("link"), in("missing"))
	must.OK(t, err)
	for _, name := range []string{"one", "two", "two", "one"} {
		link(name)
		if text, err := v.Current(); err != nil || text != name {
			t.Errorf("the link to %s has %q, %v", name, text, err)
		}
	}
	if changes != 2 {
		t.Errorf("%d changes, want 2", changes)
	}
}

// TestFileThatBecomesReadable checks that an unreadable file is read as soon as it becomes readable, even if nothing
// else about it has changed. A lasting failure is reported only once.
func TestFileThatBecomesReadable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.WriteFile(t, file, "old")
	var refused error
	var reported []error
	v, err := Open(func() (string, error) {
		if refused != nil {
			return "", refused
		}
		text, err := os.ReadFile(file)
		return string(text), err
	}, func(err error) { reported = append(reported, err) }, file)
	must.OK(t, err)
	refused = &fs.PathError{Op: "open", Path: file, Err: fs.ErrPermission} // chmod has no effect if root runs the test
	must.WriteFile(t, file, "renewed")
	for range 3 {
		if text, err := v.Current(); err != nil || text != "old" || v.Check() == nil {
			t.Errorf("unreadable file: got %q, %v, %v", text, err, v.Check())
		}
	}
	refused = nil
	if text, err := v.Current(); err != nil || text != "renewed" || v.Check() != nil {
		t.Errorf("readable file: got %q, %v, %v", text, err, v.Check())
	}
	if len(reported) != 2 || reported[0] == nil || reported[1] != nil {
		t.Errorf("unexpected report %v", reported)
	}
}
