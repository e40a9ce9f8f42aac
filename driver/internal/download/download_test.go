package download_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/download"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/profile"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }

const content = "0123456789"

// A fixture is a bucket with one object, whose bytes may break on their way.
type fixture struct {
	*s3api.Bucket
	version s3api.Version
	http    s3.HTTPClient

	mu     sync.Mutex
	ranges []string // that were asked for
	breaks []int    // after how many bytes the answers end, in order; what follows is whole
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	server := s3test.Start(t, "sim-aws")
	f := &fixture{http: server.HTTPClient}
	p, _ := profile.Named("versitygw")
	client := server.Client(func(o *s3.Options) { o.HTTPClient = f })
	f.Bucket = s3api.NewBucket(client, server.Bucket(t), p, &s3api.Stats{}, time.Minute)
	f.version = f.put(t, content)
	return f
}

// put stores the object.
func (f *fixture) put(t *testing.T, content string) s3api.Version {
	t.Helper()
	if _, err := f.Put(
		t.Context(), "key", &attributes.Attributes{}, s3api.Condition{}, bytes.NewReader([]byte(content)),
		nil); err != nil {
		t.Fatal(err)
	}
	v, _, err := f.Head(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Do implements [s3.HTTPClient].
func (f *fixture) Do(request *http.Request) (*http.Response, error) {
	response, err := f.http.Do(request)
	if err != nil || request.Method != http.MethodGet {
		return response, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ranges = append(f.ranges, request.Header.Get("Range"))
	if len(f.breaks) > 0 {
		response.Body = &brokenBody{io.MultiReader(
			io.LimitReader(response.Body, int64(f.breaks[0])), iotest.ErrReader(syscall.ECONNRESET)), response.Body}
		f.breaks = f.breaks[1:]
	}
	return response, err
}

// A brokenBody is the beginning of an answer.
type brokenBody struct {
	io.Reader
	io.Closer
}

// TestRange reads bytes of an object from connections that break. Each request asks for what has not come yet.
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
			f := newFixture(t)
			f.breaks = test.breaks
			r := download.NewRange(t.Context(), f.Bucket, f.version, test.from, test.to)
			defer r.Close()
			got, err := io.ReadAll(r)
			if want := content[test.from:test.to]; !errors.Is(err, test.err) || err == nil && string(got) != want {
				t.Errorf("%q, %v; want %q, %v", got, err, want, test.err)
			}
			if !slices.Equal(f.ranges, test.ranges) {
				t.Errorf("requests are for %q, want %q", f.ranges, test.ranges)
			}
		})
	}
}

// TestRangeOfReplaced continues to read an object that another client has replaced.
func TestRangeOfReplaced(t *testing.T) {
	f := newFixture(t)
	f.breaks = []int{2}
	r := download.NewRange(t.Context(), f.Bucket, f.version, 0, 10)
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	f.put(t, "9876543210")
	if got, err := io.ReadAll(r); !errors.Is(err, syscall.ESTALE) || len(got) > 0 {
		t.Errorf("%q, %v; want %v", got, err, syscall.ESTALE)
	}
}

// TestRangeEnds says why its context has ended, also where bytes have come.
func TestRangeEnds(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	r := download.NewRange(ctx, f.Bucket, f.version, 0, 10)
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	reason := errors.New("the session has ended")
	cancel(reason)
	if _, err := r.Read(make([]byte, 2)); !errors.Is(err, reason) {
		t.Errorf("error is %v, want %v", err, reason)
	}
}

// open reads the object from an offset on.
func (f *fixture) open(t *testing.T, offset int64) *download.Reader {
	t.Helper()
	v, _, body, err := f.Get(t.Context(), "key", offset)
	if err != nil {
		t.Fatal(err)
	}
	r := download.NewReader(t.Context(), f.Bucket, v, offset, body, membudget.New(64<<20), &s3api.Stats{}, 8)
	t.Cleanup(r.Close)
	return r
}

// TestReader reads from one offset and then from another. Only what is read from another offset takes a request.
func TestReader(t *testing.T) {
	f := newFixture(t)
	r := f.open(t, 2)
	read := func(n int, want string) {
		t.Helper()
		got := make([]byte, n)
		if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	read(3, "234")
	r.SeekTo(5) // where it is
	read(1, "5")
	r.SeekTo(0)
	r.SeekTo(8)
	if r.Offset() != 8 {
		t.Errorf("the offset is %d, want 8", r.Offset())
	}
	read(2, "89")
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	if want := []string{"bytes=2-", "bytes=8-9"}; !slices.Equal(f.ranges, want) {
		t.Errorf("requests are for %q, want %q", f.ranges, want)
	}
}

// TestReaderBroken reads by Next from connections that break.
func TestReaderBroken(t *testing.T) {
	f := newFixture(t)
	f.breaks = []int{3, 3}
	r := f.open(t, 0)
	var got []byte
	for {
		next, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, next[:1]...)
		r.Advance(1)
	}
	if string(got) != content {
		t.Errorf("%q, want %q", got, content)
	}
	if want := []string{"", "bytes=3-9", "bytes=6-9"}; !slices.Equal(f.ranges, want) {
		t.Errorf("requests are for %q, want %q", f.ranges, want)
	}
}
