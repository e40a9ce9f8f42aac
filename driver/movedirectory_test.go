package driver

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/profile"
)

// TestWalk walks through the directories "from/" and "to/". An entry is written as the name in "from/", or "-", and the
// name in "to/", or "-".
func TestWalk(t *testing.T) {
	for _, test := range []struct {
		label string
		keys  string
		want  string
	}{
		{label: "nothing"},
		{label: "only-copies", keys: "to/a", want: "--a"},
		{label: "only-sources", keys: "from/ from/a from/b", want: "/-- a-- b--"},
		{label: "same-names", keys: "from/ from/a from/b to/ to/a to/b", want: "/-/ a-a b-b"},
		{label: "some-copied", keys: "from/a from/b from/c to/b", want: "a-- b-b c--"},
		{label: "some-deleted", keys: "from/b to/a to/b to/c", want: "--a b-b --c"},
		{label: "each-has-its-own", keys: "from/a from/c to/b to/d", want: "a-- --b c-- --d"},
		{label: "objects-of-the-server",
			keys: "from/a from/.babelftp/uploads/x from/b/.babelftp/events/x to/a to/.babelftp/uploads/y", want: "a-a"},
		{label: "only-objects-of-the-server", keys: "from/b/.babelftp/events/x"},
		{label: "other-directories", keys: "from-/a from/a to-/a toa", want: "a--"},
	} {
		t.Run(test.label, func(t *testing.T) {
			for _, p := range []profile.Profile{{SortedListings: true}, {}} {
				files := newBucket(t, p, strings.Fields(test.keys)...).fs
				m := treeMove{source: files, target: files, from: "from/", to: "to/"}
				got, err := walked(t, &m)
				if want := strings.Fields(test.want); !slices.Equal(got, want) || err != nil {
					t.Errorf("got %q, %v; want %q", got, err, want)
				}
			}
		})
	}
}

// walked returns the entries of a walk and its error.
func walked(t *testing.T, m *treeMove) (entries []string, failed error) {
	name := func(v *s3api.Version, prefix string) string {
		switch {
		case v == nil:
			return "-"
		case v.Key == prefix:
			return "/"
		}
		return strings.TrimPrefix(v.Key, prefix)
	}
	for e, err := range m.walk(t.Context()) {
		if failed != nil {
			t.Error("the walk continued after an error")
		}
		if failed = err; err == nil {
			entries = append(entries, name(e.source, m.from)+"-"+name(e.copy, m.to))
		}
	}
	return entries, failed
}

var errRefused = errors.New("refused")

// TestWalkFails lets S3 refuse the listing of either directory.
func TestWalkFails(t *testing.T) {
	for _, prefix := range []string{"from/", "to/"} {
		b := newBucket(t, profile.Profile{SortedListings: true}, "from/a", "to/a")
		b.refused = prefix
		m := treeMove{source: b.fs, target: b.fs, from: "from/", to: "to/"}
		if got, err := walked(t, &m); len(got) > 0 || err == nil ||
			!strings.Contains(err.Error(), errRefused.Error()) {
			t.Errorf("without a listing of %s: got %q, %v", prefix, got, err)
		}
	}
}

// TestFingerprints checks versions that are similar to a version in the set.
func TestFingerprints(t *testing.T) {
	f := newFingerprints()
	at := time.Unix(1_000_000_000, 0)
	v := s3api.Version{Key: "a", Size: 2, ETag: `"1"`, ModTime: at, Name: "name"}
	if f.has(v) || !f.empty() {
		t.Error("empty set contains a version")
	}
	f.add(v)
	f.add(s3api.Version{Key: "b", Size: 2, ETag: `"1"`, ModTime: at})
	for label, test := range map[string]struct {
		change func(v *s3api.Version)
		want   bool
	}{
		"same":           {func(*s3api.Version) {}, true},
		"without-quotes": {func(v *s3api.Version) { v.ETag = "1" }, true},
		"later":          {func(v *s3api.Version) { v.ModTime = at.Add(time.Second) }, false},
		"other-request":  {func(v *s3api.Version) { v.Name = "other" }, false},
		"other-id":       {func(v *s3api.Version) { v.ID = "1" }, false},
		"other-etag":     {func(v *s3api.Version) { v.ETag = `"2"` }, false},
		"other-size":     {func(v *s3api.Version) { v.Size = 3 }, false},
		"other-key":      {func(v *s3api.Version) { v.Key = "c" }, false},
		"other-entry":    {func(v *s3api.Version) { v.Key, v.Name = "b", "" }, true},
	} {
		t.Run(label, func(t *testing.T) {
			asked := v
			test.change(&asked)
			if found := f.has(asked); found != test.want {
				t.Errorf("has(%+v) = %t, want %t", asked, found, test.want)
			}
		})
	}
}
