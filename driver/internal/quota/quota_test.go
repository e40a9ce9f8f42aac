package quota

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3fake"
)

// TestRecountBackOff refuses uploads one after another, by a quota whose count fails, is interrupted or ends.
func TestRecountBackOff(t *testing.T) {
	const work = 100 * time.Millisecond
	for _, test := range []struct {
		label  string
		keys   int
		before func(*s3fake.Bucket, *s3.ListObjectsV2Input) error
		count  time.Duration // of a count
	}{
		{"counted", 10_000, nil, 11 * work},
		{"failed", 10_000, func(s *s3fake.Bucket, _ *s3.ListObjectsV2Input) error {
			s.Busy = s.Busy.Add(5 * time.Second)
			return errors.New("broken")
		}, 5*time.Second + work},
		{"cut-off", 200_000, nil, recountTimeout},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &s3fake.Bucket{PageTime: work, Keys: s3fake.Numbered(test.keys)}
				s.After = func(out *s3.ListObjectsV2Output) {
					for i := range out.Contents {
						out.Contents[i].Size = aws.Int64(1)
					}
				}
				q := New(s, "bucket", "", int64(test.keys))
				if err := q.Count(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				s.Before = test.before
				refused := func() time.Duration {
					t.Helper()
					begin := time.Now()
					c := Quotas{q}.Change("more")
					defer c.End(nil)
					if err := c.Grow(t.Context(), 1, nil); !errors.Is(err, syscall.EDQUOT) {
						t.Fatalf("error is %v, want EDQUOT", err)
					}
					return time.Since(begin)
				}
				for range 2 {
					if took := refused(); took < test.count-2*work {
						t.Errorf("refused after %v, want a count, which takes %v", took, test.count)
					}
					for range 9 {
						if took := refused(); took > 0 {
							t.Errorf("refused after %v, want no count so soon after the last one", took)
						}
						time.Sleep((test.count - 2*work) * recountFactor / 10)
					}
					time.Sleep(test.count * recountFactor)
				}
			})
		})
	}
}

// TestQuotaCountsNoRecords counts a bucket with the records of uploads, of file systems with several prefixes.
func TestQuotaCountsNoRecords(t *testing.T) {
	s := &s3fake.Bucket{Keys: []string{".babelftp/uploads/a", ".babelftp2", "dir/.babelftp", "dir/.babelftp/uploads/b",
		"dir/c.babelftp/d"}}
	s.After = func(out *s3.ListObjectsV2Output) {
		for i := range out.Contents {
			out.Contents[i].Size = aws.Int64(1)
		}
	}
	for prefix, want := range map[string]int64{"": 3, "dir/": 2} {
		q := New(s, "bucket", prefix, 100)
		if err := q.Count(t.Context()); err != nil {
			t.Fatal(err)
		}
		if used, _ := q.Used(); used != want {
			t.Errorf("%d bytes below %q, want %d", used, prefix, want)
		}
	}
}
