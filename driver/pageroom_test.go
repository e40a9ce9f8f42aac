package driver

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// TestListingsShareMemory lets many clients list a directory at once who stop to read after some entries, and counts what has come and was not
// read. All entries are listed in the end, and a listing that goes on alone has large pages again.
func TestListingsShareMemory(t *testing.T) {
	const count, clients, readFirst = 10_000, 300, 10
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{way: time.Millisecond, keys: numberedKeys(count)}
		var came, large atomic.Int64
		s.before = func(_ *shelf, in *s3.ListObjectsV2Input) error {
			if in.MaxKeys == nil {
				large.Add(1)
			}
			return nil
		}
		s.after = func(out *s3.ListObjectsV2Output) { came.Add(int64(len(out.Contents))) }
		opts := &Options{Memory: NewBudget(32 << 20), Route: NewRoute()}
		goOn := make(chan struct{})
		var listings sync.WaitGroup
		read := func(pause <-chan struct{}) {
			entries, err := New(t.Context(), s, "bucket", onAWS(opts)).ReadDirSeq("dir")
			if err != nil {
				t.Error(err)
				return
			}
			n := 0
			for info, err := range entries {
				if err != nil || info.Name() != fmt.Sprintf("%06d", n) {
					t.Errorf("entry %d is %v, %v", n, info, err)
					return
				}
				if n++; n == readFirst {
					<-pause
				}
			}
			if n != count {
				t.Errorf("%d entries, want %d", n, count)
			}
		}
		for range clients {
			listings.Go(func() { read(goOn) })
		}
		time.Sleep(time.Minute)
		room := opts.Memory.Listings.Limit() / pageMemory
		if most := 2*pageEntries*room + clients*fewEntries; came.Load() > most {
			t.Errorf("%d listings hold %d entries, want at most %d", clients, came.Load(), most)
		}
		close(goOn)
		listings.Wait()
		if opts.Memory.Listings.Used() != 0 {
			t.Errorf("listings hold %d bytes at the end", opts.Memory.Listings.Used())
		}

		large.Store(0)
		s.requests = 0
		read(goOn)
		if pages := int64(count / pageEntries); large.Load() != pages || s.requests != int(pages) {
			t.Errorf("alone it took %d requests, %d of them for large pages; want %d", s.requests, large.Load(), pages)
		}
	})
}

// TestListingGrowsWithRoom begins a listing while others have the memory, and reads on when they have ended.
func TestListingGrowsWithRoom(t *testing.T) {
	const count = 10_000
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{way: time.Millisecond, keys: numberedKeys(count)}
		budget := NewBudget(0)
		var others int
		for ; budget.Listings.TryTake(pageMemory); others++ {
		}
		entries, err := New(t.Context(), s, "bucket", onAWS(&Options{Memory: budget})).ReadDirSeq("dir")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range entries {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == fewEntries/2 {
				for range others {
					budget.Listings.Return(pageMemory)
				}
			}
		}
		if want := 1 + count/pageEntries; n != count || s.requests != want {
			t.Errorf("%d entries by %d requests, want %d by %d", n, s.requests, count, want)
		}
		if budget.Listings.Used() != 0 {
			t.Errorf("listings hold %d bytes at the end", budget.Listings.Used())
		}
	})
}

// TestSeenSharesMemory lets many sessions remember files.
func TestSeenSharesMemory(t *testing.T) {
	const remember = time.Minute
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{way: time.Millisecond, keys: numberedKeys(2000)}
		budget := NewBudget(8 << 20)
		most := budget.Metadata.Limit() / seenMemory
		for range 2 {
			remembered := 0
			for range 10 {
				seen := NewSeen(remember)
				if _, _, err := s.list(t.Context(), &Options{Seen: seen, Memory: budget}); err != nil {
					t.Fatal(err)
				}
				remembered += seen.count()
			}
			if counted := budget.Metadata.Used() / seenMemory; remembered != int(most) || counted != most {
				t.Errorf("%d files are remembered, and %d counted; want %d", remembered, counted, most)
			}
			time.Sleep(2 * remember)
			synctest.Wait()
		}
		if n := budget.Metadata.Used() / seenMemory; n != 0 {
			t.Errorf("%d files count that nobody remembers", n)
		}
	})
}

// count is how many files are remembered.
func (s *Seen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		return 0
	}
	return len(s.files.entries)
}
