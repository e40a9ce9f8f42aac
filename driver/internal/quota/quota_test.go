package quota

import (
	"errors"
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/profile"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// newServer returns a simulated AWS server with a bucket.
func newServer(opts s3sim.Options) *s3sim.Server {
	opts.Profile, _ = profile.Named("aws")
	s := s3sim.New(opts)
	s.CreateBucket("bucket")
	return s
}

// limited returns quotas with a limit on the whole bucket.
func limited(client s3api.Client, limit int64) (Quotas, *Usage) {
	usages := NewUsages()
	u, _ := usages.Of(client, "bucket", "")
	return Quotas{usages, func() []Limit { return []Limit{{u, limit}} }}, u
}

// bytesOf returns the content of an object of this size.
func bytesOf(size int64) s3sim.Content { return s3sim.Content{make([]byte, size)} }

// TestRecountBackoff refuses uploads one after the other, with a quota whose count fails, is interrupted or succeeds.
func TestRecountBackoff(t *testing.T) {
	const work = 100 * time.Millisecond
	for _, test := range []struct {
		label string
		page  int           // objects per page
		fault s3sim.Fault   // for each page
		count time.Duration // duration of a count
	}{
		{"counted", 100, s3sim.Fault{After: work}, 10 * work},
		{"failed", 100, s3sim.Fault{After: 5 * time.Second, Status: http.StatusForbidden, Code: "AccessDenied"},
			5 * time.Second},
		{"cut-off", 5, s3sim.Fault{After: work}, recountTimeout},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const objects = 1000
				s := newServer(s3sim.Options{PageSize: test.page})
				for i := range objects {
					s.Put("bucket", s3sim.Object{Key: strconv.Itoa(i), Content: bytesOf(1)})
				}
				fault := s3sim.Fault{After: work}
				slow := &s3sim.Caller{Fault: func(s3sim.Operation) s3sim.Fault { return fault }}
				qs, q := limited(s.Client(slow), objects)
				must.OK(t, q.Count(t.Context()))
				time.Sleep(time.Hour)
				fault = test.fault
				refused := func() time.Duration {
					t.Helper()
					begin := time.Now()
					c := qs.Begin("more")
					defer c.End(nil)
					if err := c.Grow(t.Context(), 1); !errors.Is(err, syscall.EDQUOT) {
						t.Fatalf("got error %v, want EDQUOT", err)
					}
					return time.Since(begin)
				}
				for range 2 {
					if took := refused(); took != test.count {
						t.Errorf("refused after %v, want a count first, which takes %v", took, test.count)
					}
					for range 9 {
						if took := refused(); took > 0 {
							t.Errorf("refused after %v, want no count so soon after the previous one", took)
						}
						time.Sleep(test.count * recountFactor / 10)
					}
					time.Sleep(test.count * recountFactor)
				}
			})
		})
	}
}

// TestFirstCount stores files while the first count of a large bucket is in progress. The first upload waits for ten
// seconds, and later uploads do not wait. In a small bucket, the limit refuses the first upload.
func TestFirstCount(t *testing.T) {
	for name, test := range map[string]struct {
		pages   int // takes a second each
		refused bool
		wait    time.Duration
		later   bool // whether an upload 20 seconds later is refused
	}{
		"small": {pages: 9, refused: true, wait: 9 * time.Second, later: true},
		"large": {pages: 60, wait: recountTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(s3sim.Options{PageSize: 1})
				for i := range test.pages {
					s.Put("bucket", s3sim.Object{Key: strconv.Itoa(i), Content: bytesOf(1)})
				}
				slow := func(s3sim.Operation) s3sim.Fault { return s3sim.Fault{After: time.Second} }
				qs, u := limited(s.Client(&s3sim.Caller{Fault: slow}), int64(test.pages))
				go func() { _ = u.Count(t.Context()) }()
				synctest.Wait()
				store := func(wantWait time.Duration, wantRefused bool) {
					t.Helper()
					begin := time.Now()
					c := qs.Begin("more")
					defer c.End(nil)
					err := c.Open(t.Context())
					wait := time.Since(begin)
					if refused := errors.Is(err, syscall.EDQUOT); refused != wantRefused || wait != wantWait {
						t.Errorf("%v after %v, want refused: %t after %v", err, wait, wantRefused, wantWait)
					}
				}
				store(test.wait, test.refused)
				time.Sleep(20 * time.Second)
				store(0, test.later)
				time.Sleep(time.Minute)
				store(0, true)
			})
		})
	}
}

// TestQuotaCountsNoRecords counts a bucket with upload records, including the records of file systems with several
// prefixes.
func TestQuotaCountsNoRecords(t *testing.T) {
	s := newServer(s3sim.Options{})
	for _, key := range []string{".babelftp/uploads/a", ".babelftp2", "dir/.babelftp", "dir/.babelftp/uploads/b",
		"dir/c.babelftp/d"} {
		s.Put("bucket", s3sim.Object{Key: key, Content: bytesOf(1)})
	}
	for prefix, want := range map[string]int64{"": 3, "dir/": 2} {
		q, _ := NewUsages().Of(s.Client(nil), "bucket", prefix)
		must.OK(t, q.Count(t.Context()))
		if used, _ := q.Used(); used != want {
			t.Errorf("%d bytes below %q, want %d", used, prefix, want)
		}
	}
}
