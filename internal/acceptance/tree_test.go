package acceptance_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// writeTree makes files in a folder.
func writeTree(t *testing.T, root string, tree map[string][]byte) {
	t.Helper()
	for name, data := range tree {
		file := filepath.Join(root, name)
		must.OK(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.WriteFile(t, file, string(data))
	}
}

// readTree returns the files below a folder, by their paths in it.
func readTree(t *testing.T, root string) map[string][]byte {
	t.Helper()
	tree := map[string][]byte{}
	// Do not use os.DirFS: it refuses names that are not UTF-8.
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		tree[strings.TrimPrefix(file, root+"/")], err = os.ReadFile(file)
		return err
	})
	must.OK(t, err)
	return tree
}
