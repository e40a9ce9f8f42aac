package listing

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// TestSplitPoints sets split points in directories of some pages, and goes from each to the next.
func TestSplitPoints(t *testing.T) {
	for _, test := range []struct {
		label   string
		entries []int // of each page
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
				t.Fatalf("%q, want %q", got, test.want)
			}
			at := "d/"
			for _, want := range test.want {
				next, ok := got.after(at)
				if !ok || next != want {
					t.Errorf("%q, %v come after %q; want %q", next, ok, at, want)
				}
				at = next
			}
			if next, ok := got.after(at); ok {
				t.Errorf("%q comes after the last", next)
			}
		})
	}
}

// TestSplitPointCache remembers more directories than there is room for.
func TestSplitPointCache(t *testing.T) {
	var b SplitPointCache
	place := func(i int) listedPrefix { return listedPrefix{"bucket", fmt.Sprintf("%d/", i)} }
	large := splitPoints{strings.Repeat("k", 100_000)}
	for i := range 50 {
		b.put(place(i), large)
		if got := b.get(place(i)); !slices.Equal(got, large) {
			t.Fatalf("%d marks are remembered of the last directory", len(got))
		}
		size := 0
		for _, m := range b.byPrefix {
			size += m.size()
		}
		if size != b.bytes || size > maxSplitPointBytes {
			t.Fatalf("%d bytes are remembered, and %d counted", size, b.bytes)
		}
	}
	b.put(place(49), nil)
	if got := b.get(place(49)); got != nil {
		t.Errorf("%d marks are remembered of a directory that has none any more", len(got))
	}
	directories := len(b.byPrefix)
	b.put(place(50), slices.Repeat(large, 50))
	if len(b.byPrefix) != directories || b.get(place(50)) != nil {
		t.Error("a directory took the place of all others")
	}
}
