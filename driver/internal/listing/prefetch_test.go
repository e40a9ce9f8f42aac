package listing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/driver/profile"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// lister lists the directory "dir" of a bucket.
type lister struct{ Lister }

func newLister(s *bucket) *lister {
	stats := &s3api.Stats{}
	p, _ := profile.Named("aws")
	return &lister{Lister{
		Bucket: s3api.NewBucket(s, "bucket", p, stats, time.Minute), Memory: membudget.New(64 << 20), Stats: stats,
		SplitPoints: &SplitPointCache{}, Log: slog.New(slog.DiscardHandler),
	}}
}

// farLister returns a lister that knows that the bucket is far away.
func farLister(s *bucket) *lister {
	l := newLister(s)
	l.Stats.Observe(time.Now(), s.roundTrip)
	return l
}

// open starts to list the directory.
func (l *lister) open(ctx context.Context) (iter.Seq2[fs.FileInfo, error], error) {
	return l.List(ctx, "dir/", false)
}

// list lists the whole directory.
func (l *lister) list(ctx context.Context) (names []string, took time.Duration, err error) {
	begin := time.Now()
	entries, err := l.open(ctx)
	if err != nil {
		return nil, 0, err
	}
	for info, err := range entries {
		if err != nil {
			return names, time.Since(begin), err
		}
		name := info.Name()
		if info.IsDir() {
			name += s3object.Separator
		}
		names = append(names, name)
	}
	return names, time.Since(begin), nil
}

// listedBefore returns a lister that has listed its directory of count files once. way is the round-trip time.
func listedBefore(t *testing.T, way time.Duration, count int) (*bucket, *lister) {
	t.Helper()
	s := newBucket(way, 5*time.Millisecond, numbered(count)...)
	l := farLister(s)
	if _, _, err := l.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.requests.Store(0)
	return s, l
}

// read lists the directory and calls each for each entry until it returns false. It returns the number of entries read.
func (l *lister) read(t *testing.T, each func(read int) bool) (read int) {
	t.Helper()
	entries, err := l.open(t.Context())
	must.OK(t, err)
	for _, err := range entries {
		must.OK(t, err)
		if read++; !each(read) {
			break
		}
	}
	return read
}

// wantMemoryBack checks that listings hold no memory.
func (l *lister) wantMemoryBack(t *testing.T) {
	t.Helper()
	if l.Memory.Used() != 0 || l.Memory.Reservations() != 0 || l.Memory.Listings.Used() != 0 {
		t.Errorf(
			"%d bytes of memory and %d bytes of listings were not returned", l.Memory.Used(), l.Memory.Listings.Used())
	}
}

// TestPrefetch checks the entries, the number of requests and the duration of listings for directories of various sizes
// and kinds of names.
func TestPrefetch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	number := func(i int) string { return fmt.Sprintf("scan-%06d.pdf", i) }
	for _, test := range []struct {
		label string
		key   func(i int) string
		count int
	}{
		{"none", number, 0},
		{"one", number, 1},
		{"page-but-one", number, 999},
		{"page", number, 1000},
		{"page-and-one", number, 1001},
		{"pages", number, 2500},
		{"many-pages", number, 20_000},
		{"random-hex", func(int) string { return fmt.Sprintf("%08x-%04x.bin", random.Uint32(), random.Uint32N(1<<16)) },
			10_000},
		{"kanji", func(int) string {
			return string([]rune{rune(0x4e00 + random.IntN(2000)), rune(0x4e00 + random.IntN(2000)), '.', 'x'})
		}, 10_000},
		{"same-again", func(i int) string { return strings.Repeat("a", i%900+1) }, 10_000},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keys := []string{"before", "dir/", "dirt"}
				want := []string{}
				for i := range test.count {
					name := test.key(i)
					if i%7 == 3 {
						keys = append(keys, "dir/"+name+"/inside", "dir/"+name+"/there")
						name += "/"
					} else {
						keys = append(keys, "dir/"+name)
					}
					want = append(want, name)
				}
				slices.Sort(want)
				want = slices.Compact(want)
				s := far(keys...)
				l := farLister(s)
				pages := len(want)/pageEntries + 1
				sequential := time.Duration(pages) * (s.roundTrip + s.pageTime)
				for _, listing := range []string{"first", "second"} {
					s.requests.Store(0)
					got, took, err := l.list(t.Context())
					if err != nil || !slices.Equal(got, want) {
						t.Fatalf("%s listing: %d entries, %v; want %d", listing, len(got), err, len(want))
					}
					remembered := listing == "second" && l.SplitPoints.bytes > 0
					maxRequests := pages
					if remembered && pages > 1 {
						maxRequests = pages + pages/10 + 1
					}
					if n := s.requests.Load(); n > int64(maxRequests) {
						t.Errorf("%s listing: %d requests for %d pages", listing, n, pages)
					}
					if took > sequential || remembered && pages > 9 && took*3 > sequential {
						t.Errorf("%s listing: took %v, sequential requests take %v", listing, took, sequential)
					}
				}
			})
		})
	}
}

// TestDistance lists a directory twice. The second listing is split only if S3 is known to be far away.
func TestDistance(t *testing.T) {
	const pages = 12
	for _, test := range []struct {
		label    string
		observed time.Duration // response time of an earlier request, if any
		split    bool
	}{{"unknown", 0, false}, {"near", s3api.FarAway / 2, false}, {"far", s3api.FarAway, true}} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLister(far(numbered(pages * pageEntries)...))
				if test.observed > 0 {
					l.Stats.Observe(time.Now(), test.observed)
				}
				_, before, err := l.list(t.Context())
				must.OK(t, err)
				if _, took, err := l.list(t.Context()); err != nil || (took < before/2) != test.split {
					t.Errorf("the first listing took %v, the second %v: %v", before, took, err)
				}
			})
		})
	}
}

// splitOff reports whether a page is requested by key and not by the token of the previous page.
func splitOff(in *s3.ListObjectsV2Input) bool {
	return in.StartAfter != nil && in.ContinuationToken == nil
}

// TestSplitListing interferes with the requests of a split listing.
func TestSplitListing(t *testing.T) {
	const count = 15_000
	names := func() []string {
		names := make([]string, count)
		for i := range names {
			names[i] = fmt.Sprintf("%06d", i)
		}
		return names
	}()
	errRefused := errors.New("refused")
	for _, test := range []struct {
		label  string
		before func(s *bucket, in *s3.ListObjectsV2Input) error
		want   error
	}{
		{"splits-refused", func(_ *bucket, in *s3.ListObjectsV2Input) error {
			if splitOff(in) {
				return errRefused
			}
			return nil
		}, syscall.EIO},
		{"one-split-refused", func(s *bucket, in *s3.ListObjectsV2Input) error {
			if splitOff(in) && s.requests.Load() == 7 {
				return errRefused
			}
			return nil
		}, nil},
		{"splits-not-understood", func(_ *bucket, in *s3.ListObjectsV2Input) error {
			in.StartAfter = nil
			return nil
		}, nil},
		{"keys-come-and-go", func(s *bucket, _ *s3.ListObjectsV2Input) error {
			n := s.requests.Load()
			s.put(fmt.Sprintf("dir/%06dx", n*7919%count))
			s.server.Delete(bucketName, fmt.Sprintf("dir/%06dx", (n-5)*7919%count))
			return nil
		}, nil},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l := listedBefore(t, farWay, count)
				s.before = test.before
				got, _, err := l.list(t.Context())
				if !errors.Is(err, test.want) {
					t.Fatal(err)
				}
				if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
					t.Error("entries are out of order or repeated")
				}
				got = slices.DeleteFunc(got, func(name string) bool { return strings.HasSuffix(name, "x") })
				if !slices.Equal(got, names[:len(got)]) || err == nil && len(got) != count {
					t.Errorf("%d entries, want %d", len(got), count)
				}
				l.wantMemoryBack(t)
			})
		})
	}
}

// TestRepeatedListing changes a directory between two listings. The second one uses the split points of the first one.
func TestRepeatedListing(t *testing.T) {
	const count = 12_000
	key := func(i int, more string) string { return fmt.Sprintf("dir/%06d%s", i, more) }
	for _, test := range []struct {
		label  string
		change func(s *bucket)
		times  float64 // minimum speed, compared to sequential requests
	}{
		{"unchanged", func(*bucket) {}, 3.5},
		{"some-more", func(s *bucket) {
			for i := 0; i < count; i += 30 {
				s.put(key(i, "x"))
			}
		}, 3.5},
		{"many-more", func(s *bucket) {
			for i := range count {
				s.put(key(i, "x"))
			}
		}, 3},
		{"more-at-the-end", func(s *bucket) {
			for i := range 2500 {
				s.put(key(count+i, ""))
			}
		}, 2},
		{"directories", func(s *bucket) {
			s.remove(func(string) bool { return true })
			for i := range count {
				s.put(key(i, "/inside"))
			}
		}, 3.5},
		{"half-gone", func(s *bucket) {
			s.remove(func(key string) bool { return key[len(key)-1]%2 == 0 })
		}, 1.5},
		{"all-but-the-last-gone", func(s *bucket) {
			s.remove(func(other string) bool { return other < key(count-1, "") })
		}, 0.4},
		{"others", func(s *bucket) {
			s.remove(func(string) bool { return true })
			for i := range count {
				s.put(fmt.Sprintf("dir/%c%06d", "az"[i%2], i))
			}
		}, 0.5},
		{"no-order", func(s *bucket) {
			s.after = func(out *s3.ListObjectsV2Output) { slices.Reverse(out.Contents) }
		}, 0.5},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l := listedBefore(t, farWay, count)
				test.change(s)
				var want []string
				for _, o := range s.server.Objects(bucketName) {
					name := strings.TrimPrefix(o.Key, "dir/")
					if i := strings.IndexByte(name, '/'); i >= 0 {
						name = name[:i+1]
					}
					want = append(want, name)
				}
				got, took, err := l.list(t.Context())
				slices.Sort(got) // the server determines the order
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%d entries, %v; want %d", len(got), err, len(want))
				}
				pages := (len(want) + 999) / 1000
				times := float64(time.Duration(pages)*(s.roundTrip+s.pageTime)) / float64(took)
				t.Logf("%d requests for %d pages, %.1f times as fast", s.requests.Load(), pages, times)
				if times < test.times {
					t.Errorf("%.1f times as fast as sequential requests, want %.1f", times, test.times)
				}
				l.wantMemoryBack(t)
			})
		})
	}
}

// TestRepeatedListingNotRead opens split listings that are not read, or only later.
func TestRepeatedListingNotRead(t *testing.T) {
	const count = 5000
	for _, test := range []struct {
		label    string
		list     func(t *testing.T, s *bucket, l *lister)
		requests int64
	}{
		{"not-read", func(t *testing.T, _ *bucket, l *lister) {
			if _, err := l.open(t.Context()); err != nil {
				t.Error(err)
			}
		}, 6},
		{"read-late", func(t *testing.T, _ *bucket, l *lister) {
			entries, err := l.open(t.Context())
			must.OK(t, err)
			time.Sleep(2 * unreadTime)
			read := 0
			for _, err := range entries {
				must.OK(t, err)
				read++
			}
			if read != count {
				t.Errorf("%d entries, want %d", read, count)
			}
		}, 25},
		{"removed", func(t *testing.T, s *bucket, l *lister) {
			s.remove(func(string) bool { return true })
			if _, err := l.open(t.Context()); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}, 6},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l := listedBefore(t, farWay, count)
				test.list(t, s, l)
				time.Sleep(2 * unreadTime)
				synctest.Wait()
				if s.requests.Load() > test.requests {
					t.Errorf("%d requests, want %d", s.requests.Load(), test.requests)
				}
				l.wantMemoryBack(t)
			})
		})
	}
}

// TestListingHoldsFewPages checks the number of unread pages in memory if a client reads slowly.
func TestListingHoldsFewPages(t *testing.T) {
	const count, limit = 40_000, 1000
	for _, test := range []struct {
		label    string
		way      time.Duration
		maxPages int
		until    int // entries
	}{
		{"near", time.Millisecond, 2, 20_000},
		{"far", 40 * time.Millisecond, maxRanges + 2, count},
		{"far-and-ended", 40 * time.Millisecond, maxRanges + 2, 5500},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l := listedBefore(t, test.way, count)
				pages := 0
				read := l.read(t, func(read int) bool {
					if before := read - 1; before%limit == 0 {
						time.Sleep(time.Second) // until all requested pages have arrived
						pages = max(pages, int(s.requests.Load())-before/limit)
					}
					return read < test.until
				})
				// a page contains more entries than there are between two split points
				if read != test.until || pages > test.maxPages+read/limit/10 {
					t.Errorf("%d entries, %d pages in memory; want %d, %d", read, pages, test.until, test.maxPages)
				}
			})
		})
	}
}

// TestSplitListingRevoked checks that an upload gets the memory of a listing whose client has stopped reading.
func TestSplitListingRevoked(t *testing.T) {
	const count = 30_000
	synctest.Test(t, func(t *testing.T) {
		_, l := listedBefore(t, farWay, count)
		l.Memory = membudget.New(16 << 20)
		read := l.read(t, func(read int) bool {
			if read != 1500 {
				return true
			}
			if l.Memory.Used() == 0 {
				t.Error("the listing has not reserved anything")
			}
			part := l.Memory.Buffer(16 << 20)
			must.OK(t, part.FillFrom(t.Context(), bytes.NewReader(make([]byte, 16<<20))))
			part.Release()
			return true
		})
		if read != count || l.Memory.Used() != 0 {
			t.Errorf("%d entries, want %d; %d bytes of memory were not returned", read, count, l.Memory.Used())
		}
	})
}
