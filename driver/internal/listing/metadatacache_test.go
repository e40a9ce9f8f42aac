package listing

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/driver/internal/clients"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3fake"
)

// TestMetadataCacheSharesMemory lets many sessions remember files.
func TestMetadataCacheSharesMemory(t *testing.T) {
	const remember = time.Minute
	synctest.Test(t, func(t *testing.T) {
		s := &s3fake.Bucket{RoundTrip: time.Millisecond, Keys: s3fake.Numbered(2000)}
		budget := membudget.New(8 << 20)
		most := budget.Metadata.Limit() / cachedFileBytes
		for range 2 {
			remembered := 0
			for range 10 {
				seen := NewMetadataCache(remember)
				l := newLister(s)
				l.Memory = budget
				l.remember(t, seen, 0)
				remembered += seen.count()
			}
			if counted := budget.Metadata.Used() / cachedFileBytes; remembered != int(most) || counted != most {
				t.Errorf("%d files are remembered, and %d counted; want %d", remembered, counted, most)
			}
			time.Sleep(2 * remember)
			synctest.Wait()
		}
		if n := budget.Metadata.Used() / cachedFileBytes; n != 0 {
			t.Errorf("%d files count that no session remembers", n)
		}
	})
}

// count is how many files are remembered.
func (c *MetadataCache) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil {
		return 0
	}
	return len(c.files.entries)
}

// remember lists the directory to the end, and returns how many entries it has.
func (l *lister) remember(t *testing.T, c *MetadataCache, at uint64) (n int) {
	t.Helper()
	entries, err := l.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Remember(l.Memory, l.Bucket, entries, at) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// TestMetadataCacheExpires lets time pass over what a session has seen.
func TestMetadataCacheExpires(t *testing.T) {
	const remember = 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		s := s3fake.Far("dir/a", "dir/b")
		l, seen, writes := newLister(s), NewMetadataCache(remember), clients.NewWriteLog()
		list := func() { l.remember(t, seen, writes.Now()) }
		list()
		time.Sleep(remember - time.Second)
		if seen.File(writes, l.Bucket, "dir/a") == nil {
			t.Error("forgotten too early")
		}
		list()
		time.Sleep(2 * time.Second)
		if seen.File(writes, l.Bucket, "dir/a") != nil {
			t.Error("remembered for too long")
		}
	})
}

// TestMetadataCacheIsBounded lists more files than a session remembers.
func TestMetadataCacheIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := s3fake.Far(s3fake.Numbered(2 * maxCachedFiles)...)
		seen := NewMetadataCache(time.Hour)
		if n := newLister(s).remember(t, seen, 0); n != 2*maxCachedFiles {
			t.Fatalf("%d entries", n)
		}
		if n := seen.count(); n != maxCachedFiles {
			t.Errorf("%d files are remembered, want %d", n, maxCachedFiles)
		}
		time.Sleep(2 * time.Hour) // and the bubble ends when the timer does
	})
}
