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
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/spf13/afero"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver"
)

// An aborter is implemented by every file that OpenAt returns.
type aborter interface{ Abort(error) }

// An upload is a file that is open for writing in a session of its own.
type upload struct {
	afero.File
	cancel       context.CancelFunc // ends the session
	beforeCommit func() error
}

// upload opens a file and writes its first bytes. It ignores errors, because Close returns them.
func (x *fixture) upload(name string, size int) *upload {
	x.Helper()
	ctx, cancel := context.WithCancel(x.Context())
	u := &upload{cancel: cancel, beforeCommit: func() error { return nil }}
	session := x.session(ctx, &driver.Options{BeforeCommit: func(context.Context) error { return u.beforeCommit() }})
	f, err := session.OpenAt(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0)
	x.must(err)
	u.File = f
	u.copy(bytes.NewReader(random(size)))
	return u
}

func (u *upload) copy(r io.Reader) { _, _ = io.Copy(u.File, r) }

// close closes the file and then ends the session.
func (u *upload) close() error {
	defer u.cancel()
	return u.Close()
}

// failRequests lets the next requests for some operations fail as if S3 were overloaded.
func (x *fixture) failRequests(times int, operations ...string) {
	var left atomic.Int64
	left.Store(int64(times))
	x.spy.Before(func(_ context.Context, operation string, _ any) error {
		if slices.Contains(operations, operation) && left.Add(-1) >= 0 {
			return responseError(http.StatusServiceUnavailable, "SlowDown")
		}
		return nil
	})
}

// always is more than the number of requests in a test.
const always = 1 << 30

// responseError returns an error response of S3 in the form in which the SDK returns it.
func responseError(status int, code string) error {
	return &smithy.OperationError{ServiceID: "S3", OperationName: "Test", Err: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.GenericAPIError{Code: code, Message: "made by the test"},
	}}
}

// testCanceledWhileCreated ends the session during the request for a multipart upload. If the driver did not wait for
// the response, it would not learn the ID of the upload, which would stay open.
func testCanceledWhileCreated(t *testing.T, h Harness) {
	x := h.open(t, nil)
	u := x.upload("file", 0)
	x.spy.Before(func(ctx context.Context, _ string, in any) error {
		create, ok := in.(*s3.CreateMultipartUploadInput)
		if !ok {
			return nil
		}
		u.cancel()
		if ctx.Err() == nil {
			return nil
		}
		if _, err := x.client.CreateMultipartUpload(t.Context(), create); err != nil {
			return err
		}
		return &smithy.CanceledError{Err: ctx.Err()}
	})
	u.copy(bytes.NewReader(random(h.PartSize + 1)))
	wantError(t, u.close(), context.Canceled)
	if n := x.spy.Counts()["CreateMultipartUpload"]; n != 1 {
		t.Errorf("got %d CreateMultipartUpload requests, want 1", n)
	}
	x.wantNoUploads("file")
	x.wantKeys()
}

// testCanceledWhileCommitted ends the session during the request that publishes the file. The result of Close must
// match the content of the bucket.
func testCanceledWhileCommitted(t *testing.T, h Harness) {
	for label, size := range map[string]int{"small": 1000, "parts": h.PartSize + 1} {
		t.Run(label, func(t *testing.T) {
			x := h.open(t, nil)
			u := x.upload("file", size)
			x.spy.Before(func(ctx context.Context, operation string, _ any) error {
				if operation == "PutObject" || operation == "CompleteMultipartUpload" {
					u.cancel()
					u.File.(aborter).Abort(errors.New("too late"))
					return ctx.Err()
				}
				return nil
			})
			wantNoError(t, u.close())
			x.wantContent("file", random(size))
			x.wantNoUploads("file")
		})
	}
}

// testAbortWhileWriting aborts an upload whose parts are stuck.
func testAbortWhileWriting(t *testing.T, h Harness) {
	x := h.open(t, nil)
	u := x.upload("file", 0) // sends no request yet
	cause := errors.New("aborted by the test")
	var once sync.Once
	x.spy.Before(func(ctx context.Context, operation string, _ any) error {
		if operation != "UploadPart" {
			return nil
		}
		once.Do(func() { go u.File.(aborter).Abort(cause) })
		<-ctx.Done() // simulates a connection without progress
		return &smithy.CanceledError{Err: ctx.Err()}
	})
	wantError(t, errorOf(io.Copy(u.File, zeros{})), cause) // until the file returns an error
	wantError(t, u.close(), cause)
	x.wantNoUploads("file")
	x.wantKeys()
}

// zeros is a source that never ends.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// testMemory runs more uploads at the same time than their common budget has room for.
func testMemory(t *testing.T, h Harness) {
	t.Run("large", func(t *testing.T) {
		const part, budget, uploads, size = 5 << 20, 12 << 20, 6, 11 << 20
		x := h.open(t, nil)
		most := x.gauge(func(in any) int64 {
			part, ok := in.(*s3.UploadPartInput)
			if !ok {
				return 0
			}
			size, _ := part.Body.(io.Seeker).Seek(0, io.SeekEnd) // never fails
			_, _ = part.Body.(io.Seeker).Seek(0, io.SeekStart)
			return size
		})
		memory := driver.NewBudget(budget)
		var group errgroup.Group
		for _, key := range numbered("file", uploads) {
			group.Go(func() error {
				session := MustNew(t.Context(), x.spy, x.bucket, &driver.Options{PartSize: part, Memory: memory})
				f, err := session.Create(key)
				if err != nil {
					return err
				}
				_, err = io.Copy(f, bytes.NewReader(random(size)))
				return errors.Join(err, f.Close())
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		for _, key := range numbered("file", uploads) {
			x.wantContent(key, random(size))
		}
		if most.Load() > budget || most.Load() < part {
			t.Errorf("up to %d bytes in flight, want at most %d", most.Load(), budget)
		}
	})
	t.Run("idle", func(t *testing.T) {
		const idle = 200
		x := h.open(t, nil)
		fs := x.session(t.Context(), &driver.Options{Memory: driver.NewBudget(20 << 20)})
		files := []afero.File{}
		for _, key := range numbered("idle", idle) {
			f, err := fs.Create(key)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(key); err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		x.Fs = fs
		x.write("busy", random(3*h.PartSize)) // while all other uploads are in progress
		x.wantContent("busy", random(3*h.PartSize))
		for _, f := range files {
			x.close(f)
		}
		x.wantKeys(append(numbered("idle", idle), "busy")...)
	})
}
