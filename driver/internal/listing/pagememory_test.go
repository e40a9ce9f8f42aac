package listing

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/membudget"
)

// TestListingsShareMemory lists a directory with many clients that stop reading after some entries, and checks how many
// unread entries are in memory. All entries are listed in the end, and a single listing then gets large pages again.
func TestListingsShareMemory(t *testing.T) {
	const count, clients, readFirst = 2000, 80, 10
	synctest.Test(t, func(t *testing.T) {
		s := newBucket(time.Millisecond, 0, numbered(count)...)
		var came, large atomic.Int64
		s.before = func(_ *bucket, in *s3.ListObjectsV2Input) error {
			if in.MaxKeys == nil {
				large.Add(1)
			}
			return nil
		}
		s.after = func(out *s3.ListObjectsV2Output) { came.Add(int64(len(out.Contents))) }
		l := newLister(s)
		l.Memory = membudget.New(32 << 20)
		proceed := make(chan struct{})
		var listings sync.WaitGroup
		read := func(pause <-chan struct{}) {
			entries, err := l.open(t.Context())
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
			listings.Go(func() { read(proceed) })
		}
		time.Sleep(time.Minute)
		room := l.Memory.Listings.Limit() / pageBytes
		if limit := 2*pageEntries*room + clients*fewEntries; came.Load() > limit {
			t.Errorf("%d listings hold %d entries, want at most %d", clients, came.Load(), limit)
		}
		close(proceed)
		listings.Wait()
		if l.Memory.Listings.Used() != 0 {
			t.Errorf("listings hold %d bytes at the end", l.Memory.Listings.Used())
		}

		large.Store(0)
		s.requests.Store(0)
		read(proceed)
		if pages := int64(count / pageEntries); large.Load() != pages || s.requests.Load() != pages {
			t.Errorf("%d requests, %d of them for large pages; want %d", s.requests.Load(), large.Load(), pages)
		}
	})
}

// TestListingGrows checks that a listing that began without memory gets large pages after other listings have ended.
func TestListingGrows(t *testing.T) {
	const count = 10_000
	synctest.Test(t, func(t *testing.T) {
		s := newBucket(time.Millisecond, 0, numbered(count)...)
		l := newLister(s)
		budget := membudget.New(membudget.MinLimit)
		l.Memory = budget
		var others int
		for ; budget.Listings.TryTake(pageBytes); others++ {
		}
		n := l.read(t, func(read int) bool {
			if read == fewEntries/2 {
				for range others {
					budget.Listings.Return(pageBytes)
				}
			}
			return true
		})
		if want := int64(1 + count/pageEntries); n != count || s.requests.Load() != want {
			t.Errorf("%d entries by %d requests, want %d by %d", n, s.requests.Load(), count, want)
		}
		if budget.Listings.Used() != 0 {
			t.Errorf("listings hold %d bytes at the end", budget.Listings.Used())
		}
	})
}
