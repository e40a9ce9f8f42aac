package driver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// A shelf is a bucket with empty objects on a server that takes a while. In a synctest bubble it takes no real time, which makes
// it the only server whose times can be compared on a machine that has other work.
type shelf struct {
	s3api.Client
	way  time.Duration // there and back
	work time.Duration // for a page, one at a time
	cold time.Duration // more for a page that no token asks for

	mu       sync.Mutex
	keys     []string // in order
	requests int
	busy     time.Time
	before   func(s *shelf, in *s3.ListObjectsV2Input) error
	after    func(out *s3.ListObjectsV2Output)
}

func (s *shelf) HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	time.Sleep(s.way)
	return &s3.HeadObjectOutput{}, nil
}

// ListObjectsV2 lists as S3 does. A token is the last key or prefix.
func (s *shelf) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, _ ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	out, ready, err := s.answer(in)
	select {
	case <-time.After(time.Until(ready) + s.way):
		return out, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *shelf) answer(in *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if now := time.Now(); s.busy.Before(now) {
		s.busy = now
	}
	s.busy = s.busy.Add(s.work)
	if in.ContinuationToken == nil {
		s.busy = s.busy.Add(s.cold)
	}
	if s.before != nil {
		if err := s.before(s, in); err != nil {
			return nil, s.busy, err
		}
	}
	after := aws.ToString(in.StartAfter)
	if in.ContinuationToken != nil {
		after = *in.ContinuationToken
	}
	prefix, delimiter := aws.ToString(in.Prefix), aws.ToString(in.Delimiter)
	out := &s3.ListObjectsV2Output{EncodingType: types.EncodingTypeUrl, IsTruncated: aws.Bool(false)}
	last, count := "", 0
	at, _ := slices.BinarySearch(s.keys, max(prefix, after))
	for _, key := range s.keys[at:] {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		entry := key
		if delimiter != "" {
			if end := strings.Index(key[len(prefix):], delimiter); end >= 0 {
				entry = key[:len(prefix)+end+len(delimiter)]
			}
		}
		if key <= after || entry <= after || entry == last {
			continue
		}
		if count == int(cmp.Or(aws.ToInt32(in.MaxKeys), pageEntries)) {
			out.IsTruncated, out.NextContinuationToken = aws.Bool(true), aws.String(last)
			break
		}
		if count++; entry == key {
			out.Contents = append(out.Contents, types.Object{Key: aws.String(key)})
		} else {
			out.CommonPrefixes = append(out.CommonPrefixes, types.CommonPrefix{Prefix: aws.String(entry)})
		}
		last = entry
	}
	if s.after != nil {
		s.after(out)
	}
	return out, s.busy, nil
}

// list lists the directory "dir" to the end.
func (s *shelf) list(ctx context.Context, opts *Options) (names []string, took time.Duration, err error) {
	begin := time.Now()
	entries, err := New(ctx, s, "bucket", onAWS(opts)).ReadDirSeq("dir")
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

func distantShelf(keys ...string) *shelf {
	slices.Sort(keys)
	return &shelf{way: 40 * time.Millisecond, work: 5 * time.Millisecond, keys: slices.Compact(keys)}
}

func numberedKeys(count int) []string {
	keys := make([]string, count)
	for i := range keys {
		keys[i] = fmt.Sprintf("dir/%06d", i)
	}
	return keys
}

// keySets are the names that people give to many files in one directory.
func keySets() map[string]func(i int) string {
	hex, word, character := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4)), rand.New(rand.NewPCG(5, 6))
	words := strings.Fields("the of and to in is was he for it with as his on be at by had are but from or have an they which one you were")
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
					s := distantShelf(keys...)
					slices.Sort(want)
					want = slices.Compact(want)
					opts := farOptions(s)
					got, took, err := s.list(t.Context(), opts)
					if err != nil || !slices.Equal(got, want) {
						t.Fatalf("%d entries, %v; want %d", len(got), err, len(want))
					}
					pages := len(want)/1000 + 1
					sequential := time.Duration(pages) * (s.way + s.work)
					t.Logf("%d requests, %d pages, %.1f times as fast", s.requests, pages, float64(sequential)/float64(took))
					if s.requests > pages {
						t.Errorf("%d requests for %d pages", s.requests, pages)
					}
					if took > sequential {
						t.Errorf("it took %v, one page after another take %v", took, sequential)
					}

					s.requests = 0
					got, took, err = s.list(t.Context(), opts)
					if err != nil || !slices.Equal(got, want) {
						t.Fatalf("%d entries the second time, %v; want %d", len(got), err, len(want))
					}
					t.Logf("the second time %d requests, %.1f times as fast", s.requests, float64(sequential)/float64(took))
					if most := pages + pages/10 + 1; pages > 1 && opts.Route.marks.bytes > 0 && s.requests > most {
						t.Errorf("%d requests for %d pages that are remembered", s.requests, pages)
					}
					if pages > 9 && opts.Route.marks.bytes > 0 && took*3 > sequential {
						t.Errorf("it took %v the second time, one page after another take %v", took, sequential)
					}
				})
			})
		}
	}
}

// farOptions are those of a file system which has seen that the shelf is far away.
func farOptions(s *shelf) *Options {
	opts := &Options{Route: NewRoute(), Memory: NewBudget(defaultMemory)}
	opts.Route.stats.Observe(time.Now(), s.way)
	opts.Route.stats.Pages.Observe(time.Now(), s.way+s.work)
	return opts
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
		before func(s *shelf, in *s3.ListObjectsV2Input) error
		want   error
	}{
		{"undisturbed", nil, nil},
		{"splits-refused", func(_ *shelf, in *s3.ListObjectsV2Input) error {
			if splitOff(in) {
				return errRefused
			}
			return nil
		}, syscall.EIO},
		{"one-split-refused", func(s *shelf, in *s3.ListObjectsV2Input) error {
			if splitOff(in) && s.requests == 7 {
				return errRefused
			}
			return nil
		}, nil},
		{"splits-not-understood", func(_ *shelf, in *s3.ListObjectsV2Input) error {
			in.StartAfter = nil
			return nil
		}, nil},
		{"keys-come-and-go", func(s *shelf, _ *s3.ListObjectsV2Input) error {
			at := fmt.Sprintf("dir/%06d", (s.requests*7919)%count)
			i, found := slices.BinarySearch(s.keys, at+"x")
			if !found {
				s.keys = slices.Insert(s.keys, i, at+"x")
			}
			gone := fmt.Sprintf("dir/%06dx", ((s.requests-5)*7919)%count)
			if i, found := slices.BinarySearch(s.keys, gone); found {
				s.keys = slices.Delete(s.keys, i, i+1)
			}
			return nil
		}, nil},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := distantShelf(numberedKeys(count)...)
				opts := farOptions(s)
				if _, _, err := s.list(t.Context(), opts); err != nil {
					t.Fatal(err)
				}
				s.requests, s.before = 0, test.before
				got, _, err := s.list(t.Context(), opts)
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
				if opts.Memory.Used() != 0 || opts.Memory.Reservations() != 0 {
					t.Errorf("%d bytes of memory were not given back", opts.Memory.Used())
				}
			})
		})
	}
}

// TestRecalledListing changes a directory between two listings of it, of which the second goes by what the first has seen.
func TestRecalledListing(t *testing.T) {
	const count = 12_000
	all := numberedKeys(count)
	key := func(i int, more string) string { return fmt.Sprintf("dir/%06d%s", i, more) }
	for _, test := range []struct {
		label  string
		change func(s *shelf)
		times  float64 // as fast as one page after another, at least
	}{
		{"unchanged", func(*shelf) {}, 3.5},
		{"some-more", func(s *shelf) {
			for i := 0; i < count; i += 30 {
				s.keys = append(s.keys, key(i, "x"))
			}
		}, 3.5},
		{"many-more", func(s *shelf) {
			for i := range count {
				s.keys = append(s.keys, key(i, "x"))
			}
		}, 3},
		{"more-at-the-end", func(s *shelf) {
			for i := range 2500 {
				s.keys = append(s.keys, key(count+i, ""))
			}
		}, 2},
		{"directories", func(s *shelf) {
			for i := range s.keys {
				s.keys[i] += "/inside"
			}
		}, 3.5},
		{"half-gone", func(s *shelf) {
			s.keys = slices.DeleteFunc(s.keys, func(key string) bool { return key[len(key)-1]%2 == 0 })
		}, 1.5},
		{"all-but-the-last-gone", func(s *shelf) { s.keys = s.keys[count-1:] }, 0.4},
		{"others", func(s *shelf) {
			for i := range s.keys {
				s.keys[i] = fmt.Sprintf("dir/%c%06d", "az"[i%2], i)
			}
		}, 0.5},
		{"no-order", func(s *shelf) {
			s.after = func(out *s3.ListObjectsV2Output) { slices.Reverse(out.Contents) }
		}, 0.5},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := distantShelf(slices.Clone(all)...)
				opts := farOptions(s)
				if _, _, err := s.list(t.Context(), opts); err != nil {
					t.Fatal(err)
				}
				test.change(s)
				slices.Sort(s.keys)
				var want []string
				for _, key := range s.keys {
					name := strings.TrimPrefix(key, "dir/")
					if i := strings.IndexByte(name, '/'); i >= 0 {
						name = name[:i+1]
					}
					want = append(want, name)
				}
				s.requests = 0
				got, took, err := s.list(t.Context(), opts)
				slices.Sort(got) // it is up to the server
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%d entries, %v; want %d", len(got), err, len(want))
				}
				pages := (len(want) + 999) / 1000
				times := float64(time.Duration(pages)*(s.way+s.work)) / float64(took)
				t.Logf("%d requests for %d pages, %.1f times as fast", s.requests, pages, times)
				if times < test.times {
					t.Errorf("%.1f times as fast as one page after another, want %.1f", times, test.times)
				}
				if opts.Memory.Used() != 0 || opts.Memory.Reservations() != 0 || opts.Memory.Listings.Used() != 0 {
					t.Errorf("%d bytes of memory, and %d of listings, were not given back", opts.Memory.Used(), opts.Memory.Listings.Used())
				}
			})
		})
	}
}

// TestRecalledInVain asks for listings of a directory that was listed before which nobody reads, or not at once.
func TestRecalledInVain(t *testing.T) {
	const count = 5000
	for _, test := range []struct {
		label    string
		look     func(t *testing.T, s *shelf, f *Fs)
		requests int
	}{
		{"looked-at", func(t *testing.T, _ *shelf, f *Fs) {
			if _, err := f.StatDir("dir"); err != nil {
				t.Error(err)
			}
		}, 1},
		{"not-read", func(t *testing.T, _ *shelf, f *Fs) {
			if _, err := f.ReadDirSeq("dir"); err != nil {
				t.Error(err)
			}
		}, 6},
		{"read-late", func(t *testing.T, _ *shelf, f *Fs) {
			entries, err := f.ReadDirSeq("dir")
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
		{"not-there-any-more", func(t *testing.T, s *shelf, f *Fs) {
			s.keys = nil
			if _, err := f.ReadDirSeq("dir"); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}, 6},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := distantShelf(numberedKeys(count)...)
				opts := farOptions(s)
				if _, _, err := s.list(t.Context(), opts); err != nil {
					t.Fatal(err)
				}
				s.requests = 0
				test.look(t, s, New(t.Context(), s, "bucket", onAWS(opts)))
				time.Sleep(2 * unreadTime)
				synctest.Wait()
				if s.requests > test.requests {
					t.Errorf("%d requests, want %d", s.requests, test.requests)
				}
				if opts.Memory.Used() != 0 || opts.Memory.Reservations() != 0 || opts.Memory.Listings.Used() != 0 {
					t.Errorf("%d bytes of memory, and %d of listings, were not given back", opts.Memory.Used(), opts.Memory.Listings.Used())
				}
			})
		})
	}
}

// TestListingHoldsFewPages counts the pages that have come and were not read yet, of a directory with a million files; of a listing that
// ends in the middle no request is left, or the bubble would not end.
func TestListingHoldsFewPages(t *testing.T) {
	const count, limit = 1_000_000, 1000
	keys := numberedKeys(count)
	for _, test := range []struct {
		label string
		way   time.Duration
		most  int // pages
		until int // entries
	}{
		{"near", time.Millisecond, 2, 50_000},
		{"far", 40 * time.Millisecond, maxStretches + 2, count},
		{"far-and-ended", 40 * time.Millisecond, maxStretches + 2, 5500},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{way: test.way, work: 5 * time.Millisecond, keys: keys}
				opts := farOptions(s)
				if _, _, err := s.list(t.Context(), opts); err != nil {
					t.Fatal(err)
				}
				s.requests = 0
				entries, err := New(t.Context(), s, "bucket", onAWS(opts)).ReadDirSeq("dir")
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
						s.mu.Lock()
						most = max(most, s.requests-read/limit)
						s.mu.Unlock()
					}
					if read++; read == test.until {
						break
					}
				}
				if read != test.until || most > test.most+read/limit/10 { // pages hold more than lies between two split points
					t.Errorf("%d entries, and %d pages held; want %d and %d", read, most, test.until, test.most)
				}
			})
		})
	}
}

// TestSplitListingGivesWay lets an upload ask for the memory of a listing whose client has stopped to read.
func TestSplitListingGivesWay(t *testing.T) {
	const count = 30_000
	synctest.Test(t, func(t *testing.T) {
		s := distantShelf(numberedKeys(count)...)
		opts := farOptions(s)
		if _, _, err := s.list(t.Context(), opts); err != nil {
			t.Fatal(err)
		}
		opts.Memory = NewBudget(16 << 20)
		entries, err := New(t.Context(), s, "bucket", onAWS(opts)).ReadDirSeq("dir")
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		for _, err := range entries {
			if err != nil {
				t.Fatal(err)
			}
			if read++; read == 1500 {
				if opts.Memory.Used() == 0 {
					t.Error("the listing has not reserved anything")
				}
				part := opts.Memory.Buffer(16 << 20)
				if err := part.FillFrom(t.Context(), bytes.NewReader(make([]byte, 16<<20))); err != nil {
					t.Fatal(err)
				}
				part.Release()
			}
		}
		if read != count || opts.Memory.Used() != 0 {
			t.Errorf("%d entries, want %d; %d bytes of memory were not given back", read, count, opts.Memory.Used())
		}
	})
}
