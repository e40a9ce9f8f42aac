package drivertest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/babelftp/babelftp/driver"
)

// A distant server, as downloads of some MiB see it: one connection takes three seconds for downloadSize.
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
		x := &fixture{T: t, client: client, bucket: bucket, limits: h.Limits, profile: h.Profile}
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
			t.Errorf("it took %d requests, which is not in parallel", n)
		}
		x.spy.Reset()
		f := x.openAt("file", os.O_RDONLY, 1_234_567)
		defer x.close(f)
		var got bytes.Buffer
		if _, err := f.(io.WriterTo).WriteTo(&got); err != nil {
			t.Fatal(err)
		}
		equal(t, "rest of the file", got.Bytes(), content[1_234_567:])
		if n := x.spy.Total() - gets(x); n > x.requestsFor(secondLooks) {
			t.Errorf("it took other requests than GetObject: %v", x.spy.Counts())
		}
	})
	t.Run("one-stream-by-option", func(t *testing.T) {
		x, link := open(t, &driver.Options{DownloadConcurrency: 1})
		link.SetSpeed(0, 40<<20)
		equal(t, "file", x.read("file"), content)
		if n := gets(x); n != 1 {
			t.Errorf("it took %d requests, want 1", n)
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
			t.Errorf("it took %d requests, want 1", n)
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
		for label, fault := range map[string]func(body io.ReadCloser) io.ReadCloser{
			"reset": func(b io.ReadCloser) io.ReadCloser { return &TruncatedBody{b, 300_000, syscall.ECONNRESET} },
			"short": func(b io.ReadCloser) io.ReadCloser { return &TruncatedBody{b, 300_000, io.ErrUnexpectedEOF} },
		} {
			t.Run(label, func(t *testing.T) {
				x, link := open(t, nil)
				link.InjectFault(
					func(n int, _ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
						out, err := send()
						if err == nil && n%2 == 0 {
							out.Body = fault(out.Body)
						}
						return out, err
					})
				equal(t, "file", x.read("file"), content)
			})
		}
	})
	t.Run("refused-now-and-then", func(t *testing.T) {
		x, link := open(t, nil)
		link.InjectFault(func(n int, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if n%3 == 2 {
				return answer(r, http.StatusServiceUnavailable, "SlowDown"), nil
			}
			return send()
		})
		equal(t, "file", x.read("file"), content)
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
		group.Go(func() { x.put("file", other) }) // a server may let it wait for who reads the object
		rest, err := io.ReadAll(f)
		group.Wait()
		got = append(got, rest...)
		if !bytes.Equal(got, content[:len(got)]) {
			t.Error("the bytes are of both objects")
		}
		if err == nil {
			equal(t, "file", got, content) // all of it was asked for before
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
		_, err := io.ReadAll(f)
		wantError(t, err, cause)
		wantError(t, f.Close(), cause)
	})
	t.Run("memory", func(t *testing.T) { testRevokedMemory(t, open, content) })
}

// inWindow reads until the file comes by several requests, and returns what it has read.
func inWindow(t *testing.T, x *fixture, f io.Reader) []byte {
	t.Helper()
	x.spy.Reset()
	var got []byte
	buffer := make([]byte, 64<<10)
	for x.spy.Total() < 2 {
		n, err := f.Read(buffer)
		if err != nil {
			t.Fatalf("no second request was made before %v", err)
		}
		got = append(got, buffer[:n]...)
	}
	return got
}

// answer is an error of S3.
func answer(r *http.Request, status int, code string) *http.Response {
	body := "<Error><Code>" + code + "</Code><Message>made by the test</Message></Error>"
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Request: r,
		Header: http.Header{"Content-Type": {"application/xml"}},
		Body:   io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)), Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1,
	}
}

// testRevokedMemory lets downloads and uploads share a budget that is too small for both.
func testRevokedMemory(t *testing.T, open func(*testing.T, *driver.Options) (*fixture, *Link), content []byte) {
	t.Run("none", func(t *testing.T) { // for more than one stream
		memory := driver.NewBudget(8 << 20)
		x, link := open(t, &driver.Options{Memory: memory})
		busy := fill(t, x, memory, 8<<20)
		link.SetSpeed(0, 30<<20)
		equal(t, "file", x.read("file"), content)
		if n := x.spy.Counts()["GetObject"]; n != 1 {
			t.Errorf("it took %d requests, want 1", n)
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

// fill lets an upload take so much memory, until what it returns is called.
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
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
