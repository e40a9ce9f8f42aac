package locales_test

import (
	"io/fs"
	"path"
	"slices"
	"testing"

	"github.com/babelftp/babelftp/locales"
)

func TestTagsAreTheFolders(t *testing.T) {
	files, err := fs.Glob(locales.FS(), "*/messages.gotext.json")
	if err != nil {
		t.Fatal(err)
	}
	folders := make([]string, len(files))
	for i, file := range files {
		folders[i] = path.Dir(file)
	}
	tags := locales.Tags()
	if tags[0] != "en" {
		t.Errorf("the first language is %s, want en", tags[0])
	}
	slices.Sort(tags)
	if !slices.Equal(tags, folders) {
		t.Errorf("Tags has %v, the folders are %v", tags, folders)
	}
}
