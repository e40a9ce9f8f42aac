package locales_test

import (
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/locales"
)

// Each directory is a language with its texts and rules. English comes first.
func TestTagsAreTheFolders(t *testing.T) {
	entries, err := os.ReadDir(".")
	must.OK(t, err)
	var folders []string
	for _, entry := range entries {
		if entry.IsDir() {
			folders = append(folders, entry.Name())
		}
	}
	tags := locales.Tags()
	if tags[0] != "en" {
		t.Errorf("got first language %s, want en", tags[0])
	}
	slices.Sort(tags)
	if !slices.Equal(tags, folders) {
		t.Errorf("Tags() = %v, want %v as the folders", tags, folders)
	}
	for _, tag := range folders {
		for _, name := range []string{"messages.gotext.json", "language.yaml"} {
			if _, err := fs.Stat(locales.FS(), tag+"/"+name); err != nil {
				t.Error(err)
			}
		}
	}
}
