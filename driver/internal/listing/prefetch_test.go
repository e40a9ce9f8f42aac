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

	"github.com/babelftp/babelftp/driver/internal/endpoint"
	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3fake"
	"github.com/babelftp/babelftp/driver/profile"
)

// lister lists the directory "dir" of a bucket.
type lister struct{ Lister }

func newLister(s *s3fake.Bucket) *lister {
	stats := &endpoint.Stats{}
	p, _ := profile.Named("aws")
	return &lister{Lister{
		Bucket: s3api.NewBucket(s, "bucket", p, stats, time.Minute), Memory: membudget.New(64 << 20), Stats: stats,
		SplitPoints: &SplitPointCache{}, Log: slog.New(slog.DiscardHandler),
	}}
}

// farLister has seen that the bucket is far away.
func farLister(s *s3fake.Bucket) *lister {
	l := newLister(s)
	l.Stats.Observe(time.Now(), s.RoundTrip)
	l.Stats.Pages.Observe(time.Now(), s.RoundTrip+s.PageTime)
	return l
}

// open begins to list the directory.
func (l *lister) open(ctx context.Context) (iter.Seq2[fs.FileInfo, error], error) {
	return l.List(ctx, "dir/", false)
}

// list lists the directory to the end.
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
			name += keys.Separator
		}
		names = append(names, name)
	}
	return names, time.Since(begin), nil
}

// wantMemoryBack wants no listing to hold memory.
func (l *lister) wantMemoryBack(t *testing.T) {
	t.Helper()
	if l.Memory.Used() != 0 || l.Memory.Reservations() != 0 || l.Memory.Listings.Used() != 0 {
		t.Errorf(
			"%d bytes of memory, and %d of listings, were not given back", l.Memory.Used(), l.Memory.Listings.Used())
	}
}

// keySets are the names that people give to many files in one directory.
func keySets() map[string]func(i int) string {
	hex, word, character := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4)), rand.New(rand.NewPCG(5, 6))
	words := strings.Fields(
		"the of and to in is was he for it with as his on be at by had are but from or have an they which one you were")
	return map[string]func(int) string{
		"numbers":       func(i int) string { return fmt.Sprintf("scan-%06d.pdf", i) },
		"short-numbers": func(i int) string { return fmt.Sprintf("%05d", i) },
		"plain-numbers": func(i int) string { return fmt.Sprintf("img%d.jpg", i) },
		"hours": func(i int) string {
			return fmt.Sprintf("2024-%02d-%02dT%02d-%02d.log", i/672%12+1, i/24%28+1, i%24, i/8064)
		},
		"random-hex": func(int) string { return fmt.Sprintf("%08x-%04x.bin", hex.Uint32(), hex.Uint32N(1<<16)) },
		"words": func(int) string {
			return words[word.IntN(len(words))] + " " + words[word.IntN(len(words))] + " " + fmt.Sprint(word.IntN(100))
		},
		"kanji": func(int) string {
			return string([]rune{rune(0x4e00 + character.IntN(2000)), rune(0x4e00 + character.IntN(2000)), '.', 'x'})
		},
		"one-way": func(i int) string { return strings.Repeat("a", i%900+1) },
		"two":     func(i int) string { return []string{"a", "b"}[i%2] + fmt.Sprint(i/2%7) },
	}
}

// TestPagesAhead measures listings of directories of any size and kind of names against one page after another.
func TestPagesAhead(t *testing.T) {
	for name, key := range keySets() {
		for _, count := range []int{0, 1, 999, 1000, 1001, 2500, 10_000, 60_000} {
			t.Run(fmt.Sprintf("%s-%d", name, count), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					keys := []string{"before", "dir/", "dirt"}
					want := []string{}
					for i := range count {
						name := key(i)
						if i%7 == 3 {
							keys = append(keys, "dir/"+name+"/inside", "dir/"+name+"/there")
							name += "/"
						} else {
							keys = append(keys, "dir/"+name)
						}
						want = append(want, name)
					}
					s := s3fake.Far(keys...)
					slices.Sort(want)
					want = slices.Compact(want)
					l := farLister(s)
					got, took, err := l.list(t.Context())
					if err != nil || !slices.Equal(got, want) {
						t.Fatalf("%d entries, %v; want %d", len(got), err, len(want))
					}
					pages := len(want)/1000 + 1
					sequential := time.Duration(pages) * (s.RoundTrip + s.PageTime)
					t.Logf(
						"%d requests, %d pages, %.1f times as fast", s.Requests, pages,
						float64(sequential)/float64(took))
					if s.Requests > pages {
						t.Errorf("%d requests for %d pages", s.Requests, pages)
					}
					if took > sequential {
						t.Errorf("it took %v, one page after another take %v", took, sequential)
					}

					s.Requests = 0
					got, took, err = l.list(t.Context())
					if err != nil || !slices.Equal(got, want) {
						t.Fatalf("%d entries the second time, %v; want %d", len(got), err, len(want))
					}
					t.Logf(
						"the second time %d requests, %.1f times as fast", s.Requests,
						float64(sequential)/float64(took))
					if most := pages + pages/10 + 1; pages > 1 && l.SplitPoints.bytes > 0 && s.Requests > most {
						t.Errorf("%d requests for %d pages that are remembered", s.Requests, pages)
					}
					if pages > 9 && l.SplitPoints.bytes > 0 && took*3 > sequential {
						t.Errorf("it took %v the second time, one page after another take %v", took, sequential)
					}
				})
			})
		}
	}
}

// TestListingOfUnknownDistance lists a directory of a server of which no answer has shown the distance. The second
// listing is split if pages take long.
func TestListingOfUnknownDistance(t *testing.T) {
	const pages = 12
	for _, test := range []struct {
		label string
		way   time.Duration
		split bool
	}{{"slow-pages", 40 * time.Millisecond, true}, {"quick-pages", time.Millisecond, false}} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := s3fake.Far(s3fake.Numbered(pages * pageEntries)...)
				s.RoundTrip = test.way
				l := newLister(s)
				_, before, err := l.list(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, took, err := l.list(t.Context()); err != nil || (took < before/2) != test.split {
					t.Errorf("the first listing took %v, the second one %v, %v", before, took, err)
				}
			})
		})
	}
}

// splitOff tells whether a page is asked for that no other has told of.
func splitOff(in *s3.ListObjectsV2Input) bool {
	return in.StartAfter != nil && in.ContinuationToken == nil
}

// TestSplitListing interferes with listings that are split, by what a listing before has seen.
func TestSplitListing(t *testing.T) {
	const count = 30_000
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
		before func(s *s3fake.Bucket, in *s3.ListObjectsV2Input) error
		want   error
	}{
		{"undisturbed", nil, nil},
		{"splits-refused", func(_ *s3fake.Bucket, in *s3.ListObjectsV2Input) error {
			if splitOff(in) {
				return errRefused
			}
			return nil
		}, syscall.EIO},
		{"one-split-refused", func(s *s3fake.Bucket, in *s3.ListObjectsV2Input) error {
			if splitOff(in) && s.Requests == 7 {
				return errRefused
			}
			return nil
		}, nil},
		{"splits-not-understood", func(_ *s3fake.Bucket, in *s3.ListObjectsV2Input) error {
			in.StartAfter = nil
			return nil
		}, nil},
		{"keys-come-and-go", func(s *s3fake.Bucket, _ *s3.ListObjectsV2Input) error {
			at := fmt.Sprintf("dir/%06d", (s.Requests*7919)%count)
			i, found := slices.BinarySearch(s.Keys, at+"x")
			if !found {
				s.Keys = slices.Insert(s.Keys, i, at+"x")
			}
			gone := fmt.Sprintf("dir/%06dx", ((s.Requests-5)*7919)%count)
			if i, found := slices.BinarySearch(s.Keys, gone); found {
				s.Keys = slices.Delete(s.Keys, i, i+1)
			}
			return nil
		}, nil},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := s3fake.Far(s3fake.Numbered(count)...)
				l := farLister(s)
				if _, _, err := l.list(t.Context()); err != nil {
					t.Fatal(err)
				}
				s.Requests, s.Before = 0, test.before
				got, _, err := l.list(t.Context())
				if !errors.Is(err, test.want) {
					t.Fatal(err)
				}
				if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
					t.Error("entries out of order, or more than once")
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

// TestRepeatedListing changes a directory between two listings of it, of which the second goes by what the first has
// seen.
func TestRepeatedListing(t *testing.T) {
	const count = 12_000
	all := s3fake.Numbered(count)
	key := func(i int, more string) string { return fmt.Sprintf("dir/%06d%s", i, more) }
	for _, test := range []struct {
		label  string
		change func(s *s3fake.Bucket)
		times  float64 // as fast as one page after another, at least
	}{
		{"unchanged", func(*s3fake.Bucket) {}, 3.5},
		{"some-more", func(s *s3fake.Bucket) {
			for i := 0; i < count; i += 30 {
				s.Keys = append(s.Keys, key(i, "x"))
			}
		}, 3.5},
		{"many-more", func(s *s3fake.Bucket) {
			for i := range count {
				s.Keys = append(s.Keys, key(i, "x"))
			}
		}, 3},
		{"more-at-the-end", func(s *s3fake.Bucket) {
			for i := range 2500 {
				s.Keys = append(s.Keys, key(count+i, ""))
			}
		}, 2},
		{"directories", func(s *s3fake.Bucket) {
			for i := range s.Keys {
				s.Keys[i] += "/inside"
			}
		}, 3.5},
		{"half-gone", func(s *s3fake.Bucket) {
			s.Keys = slices.DeleteFunc(s.Keys, func(key string) bool { return key[len(key)-1]%2 == 0 })
		}, 1.5},
		{"all-but-the-last-gone", func(s *s3fake.Bucket) { s.Keys = s.Keys[count-1:] }, 0.4},
		{"others", func(s *s3fake.Bucket) {
			for i := range s.Keys {
				s.Keys[i] = fmt.Sprintf("dir/%c%06d", "az"[i%2], i)
			}
		}, 0.5},
		{"no-order", func(s *s3fake.Bucket) {
			s.After = func(out *s3.ListObjectsV2Output) { slices.Reverse(out.Contents) }
		}, 0.5},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := s3fake.Far(slices.Clone(all)...)
				l := farLister(s)
				if _, _, err := l.list(t.Context()); err != nil {
					t.Fatal(err)
				}
				test.change(s)
				slices.Sort(s.Keys)
				var want []string
				for _, key := range s.Keys {
					name := strings.TrimPrefix(key, "dir/")
					if i := strings.IndexByte(name, '/'); i >= 0 {
						name = name[:i+1]
					}
					want = append(want, name)
				}
				s.Requests = 0
				got, took, err := l.list(t.Context())
				slices.Sort(got) // it is up to the server
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%d entries, %v; want %d", len(got), err, len(want))
				}
				pages := (len(want) + 999) / 1000
				times := float64(time.Duration(pages)*(s.RoundTrip+s.PageTime)) / float64(took)
				t.Logf("%d requests for %d pages, %.1f times as fast", s.Requests, pages, times)
				if times < test.times {
					t.Errorf("%.1f times as fast as one page after another, want %.1f", times, test.times)
				}
				l.wantMemoryBack(t)
			})
		})
	}
}

// TestRepeatedListingNotRead opens listings of a directory that was listed before. No client reads them, or only later.
func TestRepeatedListingNotRead(t *testing.T) {
	const count = 5000
	for _, test := range []struct {
		label    string
		look     func(t *testing.T, s *s3fake.Bucket, l *lister)
		requests int
	}{
		{"not-read", func(t *testing.T, _ *s3fake.Bucket, l *lister) {
			if _, err := l.open(t.Context()); err != nil {
				t.Error(err)
			}
		}, 6},
		{"read-late", func(t *testing.T, _ *s3fake.Bucket, l *lister) {
			entries, err := l.open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * unreadTime)
			read := 0
			for _, err := range entries {
				if err != nil {
					t.Fatal(err)
				}
				read++
			}
			if read != count {
				t.Errorf("%d entries, want %d", read, count)
			}
		}, 25},
		{"not-there-any-more", func(t *testing.T, s *s3fake.Bucket, l *lister) {
			s.Keys = nil
			if _, err := l.open(t.Context()); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}, 6},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := s3fake.Far(s3fake.Numbered(count)...)
				l := farLister(s)
				if _, _, err := l.list(t.Context()); err != nil {
					t.Fatal(err)
				}
				s.Requests = 0
				test.look(t, s, l)
				time.Sleep(2 * unreadTime)
				synctest.Wait()
				if s.Requests > test.requests {
					t.Errorf("%d requests, want %d", s.Requests, test.requests)
				}
				l.wantMemoryBack(t)
			})
		})
	}
}

// TestListingHoldsFewPages counts the pages that have come and were not read yet, of a directory with 200,000 files.
// A listing that ends in the middle leaves no request, because the bubble would not end then.
func TestListingHoldsFewPages(t *testing.T) {
	const count, limit = 200_000, 1000
	keys := s3fake.Numbered(count)
	for _, test := range []struct {
		label string
		way   time.Duration
		most  int // pages
		until int // entries
	}{
		{"near", time.Millisecond, 2, 50_000},
		{"far", 40 * time.Millisecond, maxRanges + 2, count},
		{"far-and-ended", 40 * time.Millisecond, maxRanges + 2, 5500},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &s3fake.Bucket{RoundTrip: test.way, PageTime: 5 * time.Millisecond, Keys: keys}
				l := farLister(s)
				if _, _, err := l.list(t.Context()); err != nil {
					t.Fatal(err)
				}
				s.Requests = 0
				entries, err := l.open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				read, most := 0, 0
				for _, err := range entries {
					if err != nil {
						t.Fatal(err)
					}
					if read%limit == 0 {
						time.Sleep(time.Second) // the client is slow, and what is asked for comes meanwhile
						s.Mu.Lock()
						most = max(most, s.Requests-read/limit)
						s.Mu.Unlock()
					}
					if read++; read == test.until {
						break
					}
				}
				// pages hold more than lies between two split points
				if read != test.until || most > test.most+read/limit/10 {
					t.Errorf("%d entries, and %d pages held; want %d and %d", read, most, test.until, test.most)
				}
			})
		})
	}
}

// TestSplitListingRevoked lets an upload ask for the memory of a listing whose client has stopped to read.
func TestSplitListingRevoked(t *testing.T) {
	const count = 30_000
	synctest.Test(t, func(t *testing.T) {
		s := s3fake.Far(s3fake.Numbered(count)...)
		l := farLister(s)
		if _, _, err := l.list(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.Memory = membudget.New(16 << 20)
		entries, err := l.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		for _, err := range entries {
			if err != nil {
				t.Fatal(err)
			}
			if read++; read == 1500 {
				if l.Memory.Used() == 0 {
					t.Error("the listing has not reserved anything")
				}
				part := l.Memory.Buffer(16 << 20)
				if err := part.FillFrom(t.Context(), bytes.NewReader(make([]byte, 16<<20))); err != nil {
					t.Fatal(err)
				}
				part.Release()
			}
		}
		if read != count || l.Memory.Used() != 0 {
			t.Errorf("%d entries, want %d; %d bytes of memory were not given back", read, count, l.Memory.Used())
		}
	})
}
