package file_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/drivertest/s3spy"
	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/profile"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

const content = "0123456789"

// newBucket returns a bucket with one object. The responses to the first requests end after the number of bytes in
// breaks; later responses are complete. ranges receives the requested ranges.
func newBucket(t *testing.T, breaks []int) (b *s3api.Bucket, v s3api.Version, ranges *[]string) {
	t.Helper()
	p, _ := profile.Named("aws")
	server := s3sim.New(s3sim.Options{Profile: p})
	server.CreateBucket("bucket")
	server.Put("bucket", s3sim.Object{Key: "key", Content: s3sim.Content{[]byte(content)}})
	ranges = &[]string{}
	client := s3spy.Intercept(
		server.Client(nil), func(_ context.Context, in any, send func() (any, error)) error {
			out, err := send()
			get, ok := out.(*s3.GetObjectOutput)
			if err != nil || !ok {
				return err
			}
			*ranges = append(*ranges, aws.ToString(in.(*s3.GetObjectInput).Range))
			if len(breaks) > 0 {
				get.Body = io.NopCloser(io.MultiReader(
					io.LimitReader(get.Body, int64(breaks[0])), iotest.ErrReader(syscall.ECONNRESET)))
				breaks = breaks[1:]
			}
			return nil
		})
	b = s3api.NewBucket(client, "bucket", p, &s3api.Stats{}, time.Minute)
	v, _, err := b.Head(t.Context(), "key")
	must.OK(t, err)
	return b, v, ranges
}

// TestRange reads bytes of an object over connections that break. Each new request must continue where the previous
// response ended.
func TestRange(t *testing.T) {
	for name, test := range map[string]struct {
		from, to int64
		breaks   []int
		ranges   []string
		err      error
	}{
		"whole":        {0, 10, nil, []string{""}, nil},
		"part":         {2, 7, nil, []string{"bytes=2-6"}, nil},
		"nothing":      {3, 3, nil, nil, nil},
		"broken":       {2, 7, []int{2}, []string{"bytes=2-6", "bytes=4-6"}, nil},
		"broken-whole": {0, 10, []int{4}, []string{"", "bytes=4-9"}, nil},
		"broken-twice": {2, 7, []int{2, 1}, []string{"bytes=2-6", "bytes=4-6", "bytes=5-6"}, nil},
		"broken-always": {2, 7, []int{2, 0, 0, 0, 0, 0}, []string{
			"bytes=2-6", "bytes=4-6", "bytes=4-6", "bytes=4-6", "bytes=4-6",
		}, syscall.EAGAIN},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, v, ranges := newBucket(t, test.breaks)
			r := file.NewRange(t.Context(), b, v, test.from, test.to)
			defer r.Close()
			got, err := io.ReadAll(r)
			if want := content[test.from:test.to]; !errors.Is(err, test.err) || err == nil && string(got) != want {
				t.Errorf("got %q, %v; want %q, %v", got, err, want, test.err)
			}
			if !slices.Equal(*ranges, test.ranges) {
				t.Errorf("requests are for %q, want %q", *ranges, test.ranges)
			}
		})
	}
}
