package drivertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
)

// A distant server, for downloads of some MiB. One connection takes three seconds for downloadSize.
const (
	distance     = 20 * time.Millisecond
	bandwidth    = 4 << 20
	downloadSize = 12 << 20
)

// testDownload reads over connections that are slower than the reader.
func testDownload(t *testing.T, h Harness) {
	content := random(downloadSize)
	open := func(t *testing.T, opts *driver.Options) (*fixture, *Link) {
		client, bucket := h.Bucket(t)
		x := h.fixture(t, client, bucket)
		x.put("file", content)
		far, link := NewLink(client)
		x.spy = NewSpy(far)
		x.Fs = x.session(t.Context(), opts)
		link.SetSpeed(distance, bandwidth)
		return x, link
	}
	gets := func(x *fixture) int { return x.spy.Counts()["GetObject"] }

	t.Run("distant", func(t *testing.T) {
		x, _ := open(t, nil)
		equal(t, "file", x.read("file"), content)
		if n := gets(x); n < 4 {
			t.Errorf("got %d requests, which are not parallel", n)
		}
		x.spy.Reset()
		f := x.openAt("file", os.O_RDONLY, 1_234_567)
		defer x.close(f)
		var got bytes.Buffer
		if _, err := f.(io.WriterTo).WriteTo(&got); err != nil {
			t.Fatal(err)
		}
		equal(t, "rest of the file", got.Bytes(), content[1_234_567:])
		if n := x.spy.Total() - gets(x); n > x.requestsFor(repeatedHeads) {
			t.Errorf("unexpected requests: %v", x.spy.Counts())
		}
	})
	t.Run("one-stream-by-option", func(t *testing.T) {
		x, link := open(t, &driver.Options{DownloadConcurrency: 1})
		link.SetSpeed(0, 40<<20)
		equal(t, "file", x.read("file"), content)
		if n := gets(x); n != 1 {
			t.Errorf("got %d requests, want 1", n)
		}
	})
	t.Run("only-the-beginning", func(t *testing.T) {
		x, _ := open(t, nil)
		f := x.openAt("file", os.O_RDONLY, 0)
		if _, err := io.ReadFull(f, make([]byte, 512<<10)); err != nil {
			t.Fatal(err)
		}
		x.close(f)
		if n := gets(x); n != 1 {
			t.Errorf("got %d requests, want 1", n)
		}
	})
	t.Run("seek", func(t *testing.T) {
		x, _ := open(t, nil)
		f := x.openAt("file", os.O_RDONLY, 0)
		defer x.close(f)
		inWindow(t, x, f)
		for _, offset := range []int64{10 << 20, 1 << 20, 3_333_333} {
			if _, err := f.Seek(offset, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 1<<20)
			if _, err := io.ReadFull(f, got); err != nil {
				t.Fatal(err)
			}
			equal(t, "bytes", got, content[offset:offset+1<<20])
		}
	})
	t.Run("broken", func(t *testing.T) {
		for label, err := range map[string]error{"reset": syscall.ECONNRESET, "short": io.ErrUnexpectedEOF} {
			t.Run(label, func(t *testing.T) {
				x, _ := open(t, nil)
				var answers atomic.Int64
				x.spy.After(func(_ string, out any) error {
					if get, ok := out.(*s3.GetObjectOutput); ok && answers.Add(1)%2 == 0 {
						get.Body = &TruncatedBody{get.Body, 300_000, err}
					}
					return nil
				})
				equal(t, "file", x.read("file"), content)
			})
		}
	})
	t.Run("refused-now-and-then", func(t *testing.T) {
		x, _ := open(t, nil)
		var requests atomic.Int64
		x.spy.Before(func(context.Context, string, any) error {
			if requests.Add(1)%3 == 2 {
				return responseError(http.StatusServiceUnavailable, "SlowDown")
			}
			return nil
		})
		equal(t, "file", x.read("file"), content)
	})
	t.Run("replaced", func(t *testing.T) {
		x, _ := open(t, &driver.Options{DownloadConcurrency: 2, Memory: driver.NewBudget(16 << 20)})
		f := x.openAt("file", os.O_RDONLY, 0)
		defer x.close(f)
		got := inWindow(t, x, f)
		x.spy.Before(func(context.Context, string, any) error {
			return responseError(http.StatusPreconditionFailed, "PreconditionFailed")
		})
		rest, err := io.ReadAll(f)
		if got = append(got, rest...); err == nil {
			equal(t, "file", got, content) // everything had been requested before
			return
		}
		wantError(t, err, syscall.ESTALE)
		equal(t, "what was read", got, content[:len(got)])
	})
	t.Run("replaced-meanwhile", func(t *testing.T) {
		x, _ := open(t, &driver.Options{DownloadConcurrency: 2})
		other := slices.Clone(content)
		for i := range other {
			other[i]++
		}
		f := x.openAt("file", os.O_RDONLY, 0)
		defer x.close(f)
		got := inWindow(t, x, f)
		var group sync.WaitGroup
		group.Go(func() { x.put("file", other) }) // the server may block it until the reader has finished
		rest, err := io.ReadAll(f)
		group.Wait()
		got = append(got, rest...)
		if !bytes.Equal(got, content[:len(got)]) {
			t.Error("got bytes of both objects")
		}
		if err == nil {
			equal(t, "file", got, content) // everything had been requested before
		} else {
			wantError(t, err, syscall.ESTALE)
		}
	})
	t.Run("aborted", func(t *testing.T) {
		x, _ := open(t, nil)
		cause := errors.New("ended by the test")
		f := x.openAt("file", os.O_RDONLY, 0)
		inWindow(t, x, f)
		f.(aborter).Abort(cause)
		wantError(t, errorOf(io.ReadAll(f)), cause)
		wantError(t, f.Close(), cause)
	})
	t.Run("memory", func(t *testing.T) { testRevokedMemory(t, open, content) })
}

// inWindow reads until the download uses several requests, and returns what it has read.
func inWindow(t *testing.T, x *fixture, f io.Reader) []byte {
	t.Helper()
	x.spy.Reset()
	var got []byte
	buffer := make([]byte, 64<<10)
	for x.spy.Total() < 2 {
		n, err := f.Read(buffer)
		if err != nil {
			t.Fatalf("no second request before %v", err)
		}
		got = append(got, buffer[:n]...)
	}
	return got
}

// testRevokedMemory lets downloads and uploads share a budget that is too small for both.
func testRevokedMemory(t *testing.T, open func(*testing.T, *driver.Options) (*fixture, *Link), content []byte) {
	t.Run("none", func(t *testing.T) { // enough for one stream only
		memory := driver.NewBudget(8 << 20)
		x, link := open(t, &driver.Options{Memory: memory})
		busy := fill(t, x, memory, 8<<20)
		link.SetSpeed(0, 30<<20)
		equal(t, "file", x.read("file"), content)
		if n := x.spy.Counts()["GetObject"]; n != 1 {
			t.Errorf("got %d requests, want 1", n)
		}
		busy()
	})
	t.Run("wanted-back", func(t *testing.T) {
		// The client of a download stops reading until its upload has ended.
		memory := driver.NewBudget(8 << 20)
		x, _ := open(t, &driver.Options{Memory: memory})
		f := x.openAt("file", os.O_RDONLY, 0)
		defer x.close(f)
		got := inWindow(t, x, f)
		fill(t, x, memory, 8<<20)()
		rest, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "file", append(got, rest...), content)
	})
}

// fill lets an upload take this much memory until finish is called.
func fill(t *testing.T, x *fixture, memory *driver.Budget, size int) (finish func()) {
	t.Helper()
	fs := MustNew(t.Context(), x.client, x.bucket, &driver.Options{PartSize: int64(size) + 1, Memory: memory})
	f, err := fs.Create("upload")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(random(size - 64<<10)); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		wantNoError(t, f.Close())
	}
}
