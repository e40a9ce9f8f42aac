package driver

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestSeenExpires lets time pass over what a session has seen.
func TestSeenExpires(t *testing.T) {
	const remember = 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		s := distantShelf("dir/a", "dir/b")
		f := New(t.Context(), s, "bucket", onAWS(&Options{Seen: NewSeen(remember)}))
		list := func() {
			t.Helper()
			entries, err := f.ReadDirSeq("dir")
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range entries {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		list()
		time.Sleep(remember - time.Second)
		if f.opts.Seen.file(f.route.writes, f.bucket, "dir/a") == nil {
			t.Error("forgotten too early")
		}
		list()
		time.Sleep(2 * time.Second)
		if f.opts.Seen.file(f.route.writes, f.bucket, "dir/a") != nil {
			t.Error("remembered for too long")
		}
	})
}

// TestSeenIsBounded lists more files than a session remembers.
func TestSeenIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := distantShelf(numberedKeys(2 * maxSeenFiles)...)
		seen := NewSeen(time.Hour)
		if names, _, err := s.list(t.Context(), &Options{Seen: seen}); err != nil || len(names) != 2*maxSeenFiles {
			t.Fatalf("%d entries, %v", len(names), err)
		}
		if n := seen.count(); n != maxSeenFiles {
			t.Errorf("%d files are remembered, want %d", n, maxSeenFiles)
		}
		time.Sleep(2 * time.Hour) // and the bubble ends when the timer does
	})
}
