package acceptance_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestMirror lets lftp mirror a tree to the bucket and back, with several sessions at once. To mirror it again
// transfers nothing, because sizes and times are the same on both sides.
func TestMirror(t *testing.T) {
	t.Parallel()
	for _, storage := range []string{"minio", "versitygw", "sim-aws", "sim-r2", "sim-strict"} {
		t.Run(storage, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, s3test.Start(t, storage), profileOf(storage)...)
			l := newLftp(t, s, way{"passive", "explicit"})
			here, back := t.TempDir(), t.TempDir()
			tree := map[string][]byte{"large": content(largeSize)}
			for _, dir := range names[:7] {
				for _, name := range names {
					tree[path.Join(dir, "sub "+dir, name)] = content(len(dir) * len(name))
				}
			}
			writeTree(t, here, tree)

			up := "mirror --reverse --parallel=4 " + lftpQuote(here) + " /tree"
			l.run(up)
			for name, data := range tree {
				s.mustStore(t, "tree/"+name, data)
			}
			files := slices.DeleteFunc(s.objects(t, "tree/"), func(name string) bool {
				return name == "" || strings.HasSuffix(name, "/")
			})
			if want := slices.Sorted(maps.Keys(tree)); !slices.Equal(files, want) {
				t.Errorf("the bucket has %q, want %q", files, want)
			}
			if uploads := s.uploads(t, ""); len(uploads) > 0 {
				t.Errorf("open multipart uploads of %q", uploads)
			}
			again := l.run(strings.Replace(up, "mirror", "mirror --dry-run --no-perms", 1))
			if regexp.MustCompile(`(?m)^get `).MatchString(again) { // lftp's word for a transfer either way
				t.Errorf("to mirror again is to\n%s", again)
			}

			l.run("mirror --parallel=4 /tree " + lftpQuote(back))
			if got := readTree(t, back); !maps.EqualFunc(got, tree, slices.Equal) {
				t.Errorf("back come %q, or their contents differ", slices.Sorted(maps.Keys(got)))
			}
			l.run("rm -r /tree")
			if left := s.objects(t, ""); len(left) > 0 {
				t.Errorf("rm -r leaves %q", left)
			}
		})
	}
}

// writeTree makes files in a folder.
func writeTree(t *testing.T, root string, tree map[string][]byte) {
	t.Helper()
	for name, data := range tree {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// readTree returns the files below a folder, by their paths in it.
func readTree(t *testing.T, root string) map[string][]byte {
	t.Helper()
	tree := map[string][]byte{}
	// Not by os.DirFS, which refuses names that are not UTF-8.
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		tree[strings.TrimPrefix(file, root+"/")], err = os.ReadFile(file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
