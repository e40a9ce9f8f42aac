package filecache

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A link that leads to another file is a change, even if both files have one size and one time.
func TestLinkToAnotherFile(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"one", "two"} {
		if err := os.WriteFile(in(name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(in(name), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name string) {
		t.Helper()
		if err := os.Symlink(name, in("next")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(in("next"), in("link")); err != nil {
			t.Fatal(err)
		}
	}
	link("one")
	changes := 0
	v, err := Open(func() (string, error) {
		text, err := os.ReadFile(in("link"))
		return string(text), err
	}, func(error) { changes++ }, in("link"), in("missing"))
	if err != nil {
		t.Fatal(err)
	}
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
