package drivertest

import (
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/spf13/afero"
)

// testAfero uses the file system through afero only.
func testAfero(t *testing.T, h Harness) {
	x := h.open(t, nil)
	content := random(1000)
	if err := afero.WriteFile(x.Fs, "dir/a.txt", content, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := afero.ReadFile(x.Fs, "dir/a.txt")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "file", got, content)
	x.putAll("b", "dir/sub/c", "dir.d/e")
	x.run("fs", func(x *fixture) {
		wantNoError(x, fstest.TestFS(afero.NewIOFS(x.Fs), "b", "dir/a.txt", "dir/sub/c", "dir.d/e"))
	})
	x.run("walk", func(x *fixture) {
		names := []string{}
		err := afero.Walk(x.Fs, "dir", func(name string, _ fs.FileInfo, err error) error {
			names = append(names, filepath.ToSlash(name))
			return err
		})
		if want := []string{"dir", "dir/a.txt", "dir/sub", "dir/sub/c"}; err != nil || !slices.Equal(names, want) {
			x.Errorf("got %q, %v; want %q", names, err, want)
		}
	})
	x.run("temporary-file", func(x *fixture) {
		f, err := afero.TempFile(x.Fs, "dir", "t")
		x.must(err)
		x.close(f)
		if exists, err := afero.Exists(x.Fs, f.Name()); err != nil || !exists {
			x.Errorf("%s exists: %v, %v", f.Name(), exists, err)
		}
	})
}
