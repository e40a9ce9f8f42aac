package listing

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// TestSplitPoints records the split points of directories, and checks the point that follows each of them.
func TestSplitPoints(t *testing.T) {
	for _, test := range []struct {
		label   string
		entries []int // number of entries of each page
		prefix  bool  // entries are directories
		want    []string
	}{
		{"no-page", nil, false, nil},
		{"one-page", []int{1000}, false, nil},
		{"two-pages", []int{1000, 1}, false, []string{"d/000949", "d/\U0010FFFF"}},
		{"directories", []int{1000, 1}, true, []string{"d/000949", "d/\U0010FFFF"}},
		{"short-pages", []int{500, 500, 500}, false, []string{"d/000949", "d/\U0010FFFF"}},
		{"long-page", []int{2000}, false, []string{"d/000949", "d/001899", "d/\U0010FFFF"}},
		{"three-pages", []int{1000, 1000, 500}, false, []string{"d/000949", "d/001899", "d/\U0010FFFF"}},
	} {
		t.Run(test.label, func(t *testing.T) {
			var m recorder
			n := 0
			for _, entries := range test.entries {
				p := &s3api.Page{Encoded: true}
				for range entries {
					if key := fmt.Sprintf("d/%06d", n); test.prefix {
						p.Prefixes = append(p.Prefixes, key+s3object.Separator)
					} else {
						p.Versions = append(p.Versions, s3api.Version{Key: key})
					}
					n++
				}
				m.add("d/", p)
			}
			got := m.end("d/")
			if !slices.Equal(got, test.want) {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			at := "d/"
			for _, want := range test.want {
				next, ok := got.after(at)
				if !ok || next != want {
					t.Errorf("after(%q) = %q, %v; want %q", at, next, ok, want)
				}
				at = next
			}
			if next, ok := got.after(at); ok {
				t.Errorf("after the last split point: %q", next)
			}
		})
	}
}

// TestSplitPointCache puts more directories into the cache than fit.
func TestSplitPointCache(t *testing.T) {
	var b SplitPointCache
	place := func(i int) listedPrefix { return listedPrefix{"bucket", fmt.Sprintf("%d/", i)} }
	large := splitPoints{strings.Repeat("k", 100_000)}
	for i := range 50 {
		b.put(place(i), large)
		if got := b.get(place(i)); !slices.Equal(got, large) {
			t.Fatalf("%d split points of the last directory are cached", len(got))
		}
		size := 0
		for _, m := range b.byPrefix {
			size += m.size()
		}
		if size != b.bytes || size > maxSplitPointBytes {
			t.Fatalf("%d bytes are cached, but %d are counted", size, b.bytes)
		}
	}
	b.put(place(49), nil)
	if got := b.get(place(49)); got != nil {
		t.Errorf("%d split points are cached after they were removed", len(got))
	}
	directories := len(b.byPrefix)
	b.put(place(50), slices.Repeat(large, 50))
	if len(b.byPrefix) != directories || b.get(place(50)) != nil {
		t.Error("a directory that does not fit has evicted others")
	}
}
