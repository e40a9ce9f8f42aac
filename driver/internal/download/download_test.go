package download_test

import (
	"bytes"
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
