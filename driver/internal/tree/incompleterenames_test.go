package tree

import (
	"strconv"
	"testing"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/profile"
)

// TestIncompleteRenames completes a rename only if both files are as it left them.
func TestIncompleteRenames(t *testing.T) {
	for _, test := range []struct {
		label   string
		between func(b *bucket, i *incompleteRenames, source *s3api.Version)
		want    bool
	}{
		{"as-it-was", func(*bucket, *incompleteRenames, *s3api.Version) {}, true},
		{"completed", func(_ *bucket, i *incompleteRenames, _ *s3api.Version) { i.remove("new") }, false},
		{"source-replaced", func(_ *bucket, _ *incompleteRenames, source *s3api.Version) {
			source.ETag = `"other"`
		}, false},
		{"another-source", func(_ *bucket, _ *incompleteRenames, source *s3api.Version) {
			source.Key = "other"
		}, false},
		{"copy-replaced", func(b *bucket, _ *incompleteRenames, _ *s3api.Version) {
			b.put("new", "other")
		}, false},
		{"copy-deleted", func(b *bucket, _ *incompleteRenames, _ *s3api.Version) { b.remove("new") }, false},
	} {
		t.Run(test.label, func(t *testing.T) {
			b := newBucket(t, profile.Profile{}, "old", "new")
			tree := b.tree
			source := b.version("old")
			if tree.incomplete.has(t.Context(), source, "new", tree.Bucket) {
				t.Error("a rename is incomplete before any began")
			}
			tree.incomplete.add(source, b.version("new"))
			test.between(b, tree.incomplete, &source)
			if got := tree.incomplete.has(t.Context(), source, "new", tree.Bucket); got != test.want {
				t.Errorf("the rename is incomplete: %t, want %t", got, test.want)
			}
			if tree.incomplete.has(t.Context(), source, "other", tree.Bucket) {
				t.Error("a rename to another name is incomplete")
			}
		})
	}
}

// TestIncompleteRenamesHasLimit remembers so many renames, and more when one is complete.
func TestIncompleteRenamesHasLimit(t *testing.T) {
	b := newBucket(t, profile.Profile{})
	tree := b.tree
	add := func(i int) {
		tree.incomplete.add(b.version("old"), b.version(strconv.Itoa(i)))
	}
	for i := range maxIncompleteRenames + 1 {
		add(i)
	}
	if n := len(tree.incomplete.files); n != maxIncompleteRenames {
		t.Errorf("%d renames are remembered, want %d", n, maxIncompleteRenames)
	}
	tree.incomplete.remove("0")
	add(maxIncompleteRenames)
	if _, found := tree.incomplete.files[strconv.Itoa(maxIncompleteRenames)]; !found {
		t.Error("there is no room for another rename after one is complete")
	}
}
