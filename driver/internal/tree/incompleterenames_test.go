package tree

import (
	"strconv"
	"testing"

	"github.com/babelftp/babelftp/driver/profile"
)

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
