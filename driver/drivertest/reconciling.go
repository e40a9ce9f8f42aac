package drivertest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
)

// testReconcile loses the responses of S3. What the driver reports must match the content of the bucket on every
// server, because the metadata shows which request has stored an object.
func testReconcile(t *testing.T, h Harness) {
	x := h.open(t, nil)
	for _, test := range []struct {
		label, operation string
		objects          driver.Objects
		noOverwrite      bool
		before           []byte // content of the file before; nil if it does not exist
		run              func(x *fixture, name string) error
		after            []byte
	}{
		{label: "write", operation: "PutObject", run: writes(1000), after: random(1000)},
		{label: "write-nothing", operation: "PutObject", run: writes(0)},
		{label: "replace", operation: "PutObject", before: random(10), run: writes(1000), after: random(1000)},
		{label: "write-new", operation: "PutObject", noOverwrite: true, run: writes(1000), after: random(1000)},
		{label: "write-parts", operation: "CompleteMultipartUpload", run: writes(h.PartSize + 1),
			after: random(h.PartSize + 1)},
		{
			label: "write-new-parts", operation: "CompleteMultipartUpload", noOverwrite: true,
			run: writes(h.PartSize + 1), after: random(h.PartSize + 1),
		},
		{
			label: "write-summed-parts", operation: "CompleteMultipartUpload",
			objects: driver.Objects{Checksum: types.ChecksumAlgorithmCrc32}, run: writes(h.PartSize + 1),
			after: random(h.PartSize + 1),
		},
		{
			label: "write-encrypted", operation: "PutObject",
			objects: driver.Objects{Encryption: types.ServerSideEncryptionAwsKms}, run: writes(1000),
			after: random(1000),
		},
		{
			label: "write-encrypted-parts", operation: "CompleteMultipartUpload",
			objects: driver.Objects{Encryption: types.ServerSideEncryptionAwsKms}, run: writes(h.PartSize + 1),
			after: random(h.PartSize + 1),
		},
		{
			label: "append", operation: "PutObject", before: random(10), run: appends(1000),
			after: slices.Concat(random(10), random(1000)),
		},
		{
			label: "append-parts", operation: "CompleteMultipartUpload", before: random(h.PartSize), run: appends(1000),
			after: slices.Concat(random(h.PartSize), random(1000)),
		},
		{
			label: "restart", operation: "PutObject", before: random(100), run: restarts(10, 1000),
			after: slices.Concat(random(100)[:10], random(1000)),
		},
		{
			label: "restart-in-parts", operation: "CompleteMultipartUpload", before: random(3 * h.PartSize),
			run:   restarts(1, 1000),
			after: slices.Concat(random(3 * h.PartSize)[:1], random(1000), random(3 * h.PartSize)[1001:]),
		},
	} {
		if x.limits.has(EncryptionRequests) {
			test.objects.Encryption = ""
		}
		x.run(test.label, func(x *fixture) {
			x.Fs = x.session(x.Context(), &driver.Options{NoOverwrite: test.noOverwrite, Objects: test.objects})
			name := test.label
			if test.before != nil {
				x.put(name, test.before)
			}
			x.loseResponses(test.operation)
			err := test.run(x, name)
			x.spy.After(nil)
			wantError(x, err, nil)
			x.wantContent(name, test.after)
			x.wantNoUploads(name)
		})
	}
	for _, test := range []struct {
		label, operation string
		run              func(x *fixture) error
		want             []string // expected keys
	}{
		{"mkdir", "PutObject", mkdir("new"), []string{"empty/", "file", "new/", "large"}},
		{"remove", "DeleteObject", func(x *fixture) error { return x.RemoveFile("file") }, []string{"empty/", "large"}},
		{"remove-directory", "DeleteObject", func(x *fixture) error {
			return x.RemoveDir("empty")
		}, []string{"file", "large"}},
		{"time", "CopyObject", func(x *fixture) error {
			return x.setTime("file")
		}, []string{"empty/", "file", "large"}},
		{"time-of-parts", "CopyObject", func(x *fixture) error {
			return x.setTime("large")
		}, []string{"empty/", "file", "large"}},
		{"copy", "CopyObject", copies("file", "copy"), []string{"copy", "empty/", "file", "large"}},
		{"rename-copied", "CopyObject", renames("file", "moved"), []string{"empty/", "large", "moved"}},
		{"rename-deleted", "DeleteObject", renames("file", "moved"), []string{"empty/", "large", "moved"}},
	} {
		t.Run(test.label, func(t *testing.T) {
			x := h.open(t, nil)
			x.put("file", random(1000))
			x.put("empty/", nil)
			x.write("large", random(h.PartSize+1))
			x.loseResponses(test.operation)
			err := test.run(x)
			x.spy.After(nil)
			wantError(x, err, nil)
			x.wantKeys(test.want...)
		})
	}
	x.run("not-done", func(x *fixture) { x.testNotDone() })
}

// testAborted lets another client abort uploads and copies in parts right before they are completed. The existing
// object must stay, and the operation must return an error. versitygw returns 200 if an object with the key exists.
func testAborted(t *testing.T, h Harness) {
	for _, test := range []struct {
		label string
		opts  driver.Options
		run   func(x *fixture) error
	}{
		{"write", driver.Options{}, func(x *fixture) error { return x.tryWrite("file", random(h.PartSize+1)) }},
		{"copy", driver.Options{CopyLimit: 1}, func(x *fixture) error { return x.Rename("large", "file") }},
	} {
		t.Run(test.label, func(t *testing.T) {
			x := h.open(t, &test.opts)
			x.put("file", []byte("older"))
			x.put("large", random(h.PartSize+1))
			aborted := 0
			x.spy.Before(func(_ context.Context, _ string, in any) error {
				complete, ok := in.(*s3.CompleteMultipartUploadInput)
				if !ok {
					return nil
				}
				aborted++
				x.abortUploads(*complete.Key)
				return nil
			})
			wantError(t, test.run(x), syscall.EAGAIN)
			x.spy.Before(nil)
			if aborted != 1 {
				t.Errorf("%d uploads were completed", aborted)
			}
			x.wantContent("file", []byte("older"))
			x.wantKeys("file", "large")
			x.wantNoUploads("file")
		})
	}
}

// testAbortedWhileStored lets the client end an upload while S3 stores it. The response is lost, and so are the
// responses to all checks. The error must report that S3 may have stored the file, whatever has ended the upload.
func testAbortedWhileStored(t *testing.T, h Harness) {
	for label, size := range map[string]int{"small": 10, "parts": h.PartSize + 1} {
		t.Run(label, func(t *testing.T) {
			x := h.open(t, nil)
			file := x.openAt("file", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0)
			if _, err := file.Write(random(size)); err != nil {
				t.Fatal(err)
			}
			x.spy.After(func(operation string, _ any) error {
				if operation != "PutObject" && operation != "CompleteMultipartUpload" {
					return nil
				}
				x.spy.After(nil)
				x.spy.Before(func(context.Context, string, any) error {
					return responseError(http.StatusForbidden, "AccessDenied")
				})
				file.(aborter).Abort(errors.New("the client has gone"))
				return io.ErrUnexpectedEOF
			})
			err := file.Close()
			x.spy.Before(nil)
			wantError(t, err, syscall.EAGAIN)
			x.wantContent("file", random(size))
		})
	}
}

func mkdir(name string) func(*fixture) error {
	return func(x *fixture) error { return x.Mkdir(name, 0o755) }
}

func copies(from, to string) func(*fixture) error {
	return func(x *fixture) error { return x.Copy(x.Context(), from, to) }
}

func renames(from, to string) func(*fixture) error {
	return func(x *fixture) error { return x.Rename(from, to) }
}

func writes(size int) func(*fixture, string) error {
	return func(x *fixture, name string) error { return x.tryWrite(name, random(size)) }
}

func restarts(offset, size int) func(*fixture, string) error {
	return func(x *fixture, name string) error { return x.tryRestart(name, offset, random(size)) }
}

func appends(size int) func(*fixture, string) error {
	return func(x *fixture, name string) error { return x.tryAppend(name, random(size)) }
}

// setTime sets the modification time of a file and checks it.
func (x *fixture) setTime(name string) error {
	want := time.Unix(1_000_000_000, 123)
	err := x.Chtimes(name, want, want)
	x.spy.After(nil)
	if info, statErr := x.StatFile(name); statErr != nil || !info.ModTime().Equal(want) {
		x.Errorf("%s: got %v, %v", name, info, statErr)
	}
	return err
}

// loseResponses lets S3 perform some operations and loses the responses.
func (x *fixture) loseResponses(operations ...string) {
	x.spy.After(func(operation string, _ any) error {
		if slices.Contains(operations, operation) {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
}

// testNotDone checks the errors if S3 has not performed a request, or if the driver cannot know.
func (x *fixture) testNotDone() {
	defer x.spy.Before(nil)
	for label, size := range map[string]int{"write": 1000, "parts": x.partSize + 1} {
		name := "not-done-" + label
		x.put(name, random(size + 1)[1:]) // different content of the same size
		x.failRequests(always, "PutObject", "CompleteMultipartUpload")
		wantError(x, x.tryWrite(name, random(size)), syscall.EAGAIN)
		x.wantContent(name, random(size + 1)[1:])
		x.wantNoUploads(name)
	}
	x.put("as-before", random(1000)) // stored an hour ago
	x.failRequests(always, "PutObject")
	x.spy.After(func(_ string, out any) error {
		if head, ok := out.(*s3.HeadObjectOutput); ok {
			head.LastModified = aws.Time(time.Now().Add(-time.Hour))
		}
		return nil
	})
	wantError(x, x.tryWrite("as-before", random(1000)), syscall.EAGAIN)
	x.failRequests(always, "HeadObject")
	x.loseResponses("PutObject")
	wantError(x, x.tryWrite("unknown", random(1000)), syscall.EAGAIN)
	x.spy.After(nil)
	x.spy.Before(nil)
	f := x.openAt("taken", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0)
	x.must(errorOf(f.Write(random(10))))
	x.put("taken", random(10))
	wantError(x, f.Close(), fs.ErrExist) // even if the content is the same
}

// testRenameRefused renames files that S3 refuses to delete. Both names stay, and the same rename completes later in
// any session, whether it may replace files or not.
func testRenameRefused(t *testing.T, h Harness) {
	for label, opts := range map[string]driver.Options{"replacing": {}, "keeping": {NoOverwrite: true}} {
		for size, sizeLabel := range map[int]string{0: "-nothing", 1000: "-small", h.PartSize + 1: "-parts"} {
			t.Run(label+sizeLabel, func(t *testing.T) {
				t.Parallel() // each of them waits for seconds
				x := h.open(t, &opts)
				x.write("old", random(size))
				x.refuseDelete(responseError(http.StatusForbidden, "AccessDenied"))
				wantError(x, x.Rename("old", "new"), fs.ErrPermission)
				x.wantKeys("new", "old")
				x.refuseDelete(responseError(http.StatusServiceUnavailable, "SlowDown"))
				wantError(x, x.Rename("old", "new"), syscall.EAGAIN)
				x.wantKeys("new", "old")
				x.spy.Before(nil)
				x.Fs = x.session(t.Context(), &opts)
				x.must(x.Rename("old", "new"))
				x.wantKeys("new")
				x.wantContent("new", random(size))
			})
		}
	}
	t.Run("back", func(t *testing.T) { // another session renames back to a name that the file still has
		t.Parallel()
		x := h.open(t, nil)
		x.write("old", random(100))
		x.refuseDelete(responseError(http.StatusForbidden, "AccessDenied"))
		wantError(x, x.Rename("old", "new"), fs.ErrPermission)
		x.spy.Before(nil)
		x.Fs = x.session(t.Context(), nil)
		x.must(x.Rename("new", "old"))
		x.wantKeys("old")
		x.wantContent("old", random(100))
	})
	for label, later := range map[string]string{"replaced": "OLD", "stored-equal": "old"} {
		t.Run(label, func(t *testing.T) { // another client replaces the file
			t.Parallel()
			x := h.open(t, &driver.Options{NoOverwrite: true})
			x.write("old", []byte("old"))
			x.refuseDelete(responseError(http.StatusServiceUnavailable, "SlowDown"))
			wantError(x, x.Rename("old", "new"), syscall.EAGAIN)
			x.spy.Before(nil)
			other := *x
			other.Fs = x.session(t.Context(), nil)
			other.write("old", []byte(later))
			wantError(x, x.Rename("old", "new"), fs.ErrExist)
			other.write("new", []byte("NEW"))
			wantError(x, x.Rename("old", "new"), fs.ErrExist)
			x.wantContent("new", []byte("NEW"))
			x.wantContent("old", []byte(later))
		})
	}
}

// refuseDelete lets S3 refuse to delete the old file.
func (x *fixture) refuseDelete(err error) {
	x.spy.Before(func(_ context.Context, _ string, in any) error {
		if in, ok := in.(*s3.DeleteObjectInput); ok && *in.Key == "old" {
			return err
		}
		return nil
	})
}
