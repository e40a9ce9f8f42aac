package tree

import (
	"fmt"
	"testing"

	"github.com/babelftp/babelftp/driver/profile"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestBatch deletes objects of a directory, and wants as few requests as the server allows.
func TestBatch(t *testing.T) {
	exact := func(b *batch) { b.exact, b.prefix = true, "d/" }
	justListed := func(b *batch) { exact(b); b.listed = true }
	for _, test := range []struct {
		label   string
		profile profile.Profile
		kind    func(b *batch)
		keys    []string
		changed string // another client replaces it before it is deleted
		want    []string
	}{
		{
			"by-many", profile.Profile{BatchDelete: true, BatchDeletesMarkers: true}, func(*batch) {},
			[]string{"d/", "d/a", "d/b"}, "", []string{"delete 3 from d/ on, 0 by ETag"},
		},
		{
			"one-by-one", profile.Profile{}, func(*batch) {},
			[]string{"d/a", "d/b"}, "", []string{"delete d/a", "delete d/b"},
		},
		{
			"marker-alone", profile.Profile{BatchDelete: true}, func(*batch) {},
			[]string{"d/", "d/a", "d/b"}, "", []string{"delete d/", "delete 2 from d/a on, 0 by ETag"},
		},
		{
			"key-that-xml-cannot-hold", profile.Profile{BatchDelete: true, BatchDeletesMarkers: true}, func(*batch) {},
			[]string{"d/\x01", "d/a", "d/b"}, "", []string{"delete d/\x01", "delete 2 from d/a on, 0 by ETag"},
		},
		{
			"versions-by-many", profile.Profile{BatchDelete: true, ConditionalBatchDelete: true,
				ConditionalDelete: true}, exact,
			[]string{"d/a", "d/b"}, "", []string{"delete 2 from d/a on, 2 by ETag"},
		},
		{
			"versions-by-conditions", profile.Profile{BatchDelete: true, ConditionalDelete: true, SortedListings: true},
			exact,
			[]string{"d/a", "d/b"}, "d/b",
			[]string{"look at d/a", "delete d/a if it is as at first", "look at d/b"},
		},
		{
			"versions-listed-again", profile.Profile{BatchDelete: true, SortedListings: true}, exact,
			[]string{"d/a", "d/b", "d/c"}, "d/b", []string{"delete 2 from d/a on, 0 by ETag"},
		},
		{
			"versions-just-listed", profile.Profile{BatchDelete: true, SortedListings: true}, justListed,
			[]string{"d/a", "d/b"}, "", []string{"delete 2 from d/a on, 0 by ETag"},
		},
		{
			"versions-looked-at", profile.Profile{BatchDelete: true}, exact,
			[]string{"d/a", "d/b"}, "d/b", []string{"look at d/a", "delete d/a", "look at d/b"},
		},
	} {
		t.Run(test.label, func(t *testing.T) {
			s := newBucket(t, test.profile, test.keys...)
			if test.changed != "" {
				s.put(test.changed, "of another client")
			}
			b := batch{tree: s.tree, submit: run(t)}
			test.kind(&b)
			for _, key := range test.keys {
				must.OK(t, b.add(t.Context(), s.version(key)))
			}
			b.send(t.Context())
			s.wantRequests(test.want...)
			if replaced := b.replaced.Load(); replaced != (test.changed != "") {
				t.Errorf("it tells that one was replaced: %t", replaced)
			}
			if left := s.has(test.changed); left != (test.changed != "") {
				t.Errorf("what another client has stored is there: %t", left)
			}
		})
	}
}

// run performs what is submitted at once.
func run(t *testing.T) func(func() error) {
	return func(work func() error) {
		if err := work(); err != nil {
			t.Error(err)
		}
	}
}

// TestBatchOfMany deletes more objects than S3 takes by one request. Of versions that were listed right before, only
// those of the first request are deleted without another list.
func TestBatchOfMany(t *testing.T) {
	var keys []string
	for i := range maxBatch + 2 {
		keys = append(keys, fmt.Sprintf("d/%04d", i))
	}
	s := newBucket(t, profile.Profile{BatchDelete: true, SortedListings: true}, keys...)
	b := batch{tree: s.tree, submit: run(t), exact: true, prefix: "d/", listed: true}
	for _, key := range keys {
		must.OK(t, b.add(t.Context(), s.version(key)))
	}
	lists := s.lists
	b.send(t.Context())
	s.wantRequests("delete 1000 from d/0000 on, 0 by ETag", "delete 2 from d/1000 on, 0 by ETag")
	if again := s.lists - lists; lists != 0 || again != 1 {
		t.Errorf("%d lists for the first request, and %d for the second one; want 0 and 1", lists, again)
	}
	b.send(t.Context()) // nothing
	if len(s.requests) != 2 {
		t.Errorf("requests are %q", s.requests)
	}
}
