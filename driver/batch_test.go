package driver

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/driver/profile"
	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestBatch deletes objects of a directory, and checks that this takes as few requests as the server allows.
func TestBatch(t *testing.T) {
	for _, test := range []struct {
		label   string
		profile profile.Profile
		keys    []string
		changed string // object that another client replaces before it is deleted
		stays   bool   // whether the replaced object stays
		want    []string
	}{
		{
			label: "by-many", profile: profile.Profile{BatchDelete: true, BatchDeletesMarkers: true},
			keys: []string{"d/", "d/a", "d/b"}, want: []string{"delete 3 from d/ on, 0 by ETag"},
		},
		{
			label: "one-by-one", keys: []string{"d/a", "d/b"}, want: []string{"delete d/a", "delete d/b"},
		},
		{
			label: "marker-alone", profile: profile.Profile{BatchDelete: true},
			keys: []string{"d/", "d/a", "d/b"}, want: []string{"delete d/", "delete 2 from d/a on, 0 by ETag"},
		},
		{
			label: "key-that-xml-cannot-hold", profile: profile.Profile{BatchDelete: true, BatchDeletesMarkers: true},
			keys: []string{"d/\x01", "d/a", "d/b"}, want: []string{"delete d/\x01", "delete 2 from d/a on, 0 by ETag"},
		},
		{
			label:   "by-many-on-conditions",
			profile: profile.Profile{BatchDelete: true, ConditionalBatchDelete: true, ConditionalDelete: true},
			keys:    []string{"d/a", "d/b"}, changed: "d/b", stays: true,
			want: []string{"delete 2 from d/a on, 2 by ETag", "look at d/b"},
		},
		{
			label: "one-by-one-on-conditions", profile: profile.Profile{ConditionalDelete: true},
			keys: []string{"d/a", "d/b"}, changed: "d/b", stays: true,
			want: []string{"delete d/a if it is as at first", "delete d/b if it is as at first"},
		},
		{
			label: "replaced-without-conditions", profile: profile.Profile{BatchDelete: true, BatchDeletesMarkers: true},
			keys: []string{"d/a", "d/b"}, changed: "d/b", want: []string{"delete 2 from d/a on, 0 by ETag"},
		},
	} {
		t.Run(test.label, func(t *testing.T) {
			s := newBucket(t, test.profile, test.keys...)
			if test.changed != "" {
				s.put(test.changed, "of another client")
			}
			b := batch{fs: s.fs, prefix: "d/", submit: run(t)}
			for _, key := range test.keys {
				must.OK(t, b.add(t.Context(), s.version(key)))
			}
			b.send(t.Context())
			s.wantRequests(test.want...)
			named, stale := errors.AsType[*s3error.EntryError](b.stale.cause())
			if stale != test.stays || stale && (named.Name != "b" || !errors.Is(named, syscall.ESTALE)) {
				t.Errorf("unexpected error of the batch: %v", b.stale.cause())
			}
			if left := s.has(test.changed); left != test.stays {
				t.Errorf("the object of another client exists: %t", left)
			}
		})
	}
}

// run returns a submit function that runs the work immediately.
func run(t *testing.T) func(func() error) {
	return func(work func() error) {
		if err := work(); err != nil {
			t.Error(err)
		}
	}
}

// TestBatchOfMany deletes more objects than S3 takes in one request.
func TestBatchOfMany(t *testing.T) {
	var keys []string
	for i := range maxBatch + 2 {
		keys = append(keys, fmt.Sprintf("d/%04d", i))
	}
	s := newBucket(t, profile.Profile{BatchDelete: true}, keys...)
	b := batch{fs: s.fs, prefix: "d/", submit: run(t)}
	for _, key := range keys {
		must.OK(t, b.add(t.Context(), s.version(key)))
	}
	b.send(t.Context())
	s.wantRequests("delete 1000 from d/0000 on, 0 by ETag", "delete 2 from d/1000 on, 0 by ETag")
	b.send(t.Context()) // nothing is waiting
	if len(s.requests) != 2 {
		t.Errorf("requests are %q", s.requests)
	}
}
