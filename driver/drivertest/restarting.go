package drivertest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/driver"
)

// restart is the flag of STOR after REST.
const restart = os.O_WRONLY | os.O_CREATE

// testRestart writes at an offset. The bytes of the file after the written ones stay, unless [driver.Options.Truncate]
// is set.
func testRestart(t *testing.T, h Harness) {
	for _, keeps := range []bool{true, false} {
		x := h.open(t, &driver.Options{Truncate: !keeps})
		for _, test := range []struct {
			offset, old, written int // in bytes
		}{
			{0, 10, 3}, // replaces the file
			{1, 10, 0},
			{1, 10, 5},
			{10, 10, 5},
			{5, 10, 9},
			{h.PartSize, h.PartSize + 1, 0},
			{h.PartSize, 2 * h.PartSize, 5},
			{h.PartSize + 1, 3 * h.PartSize, 1},
			{1, 2*h.PartSize - 1, 5}, // less than a part follows
			{1, 2 * h.PartSize, 5},   // a part follows
			{1, 3*h.PartSize + 7, h.PartSize - 1},
			{h.PartSize, 4 * h.PartSize, h.PartSize},
			{2*h.PartSize + 1, 5*h.PartSize + 1, h.PartSize + 3},
		} {
			if !keeps && test.old > 2*h.PartSize {
				continue // does not differ from the other cases
			}
			x.run(
				fmt.Sprintf("%d-bytes-at-%d-of-%d-keeps-%v", test.written, test.offset, test.old, keeps),
				func(x *fixture) {
					old, written := random(test.old), random(test.written + 1)[1:]
					x.put("file", old)
					f := x.openAt("file", restart, int64(test.offset))
					x.must(errorOf(f.Write(written)))
					want := slices.Concat(old[:test.offset], written)
					if keeps && test.offset > 0 {
						want = slices.Concat(want, old[min(len(want), len(old)):])
					}
					wantSize := func(when string) {
						if info, err := f.Stat(); err != nil || info.Size() != int64(len(want)) {
							x.Errorf("%s: got %v, %v; want %d bytes", when, info, err, len(want))
						}
					}
					wantSize("before it is closed")
					x.close(f)
					x.wantContent("file", want)
					x.wantNoUploads("file")
					wantSize("when it is closed")
				})
		}
	}
	x := h.open(t, nil)
	for label, kind := range map[string]error{"beyond-the-end": fs.ErrInvalid, "missing": fs.ErrNotExist} {
		x.run(label, func(x *fixture) {
			x.put("beyond-the-end", random(10))
			wantError(x, errorOf(x.OpenAt(label, restart, 11)), kind)
		})
	}
	x.run("replaced", func(x *fixture) { x.testRestartReplaced() })
	x.run("rest-not-read", func(x *fixture) { x.testRestNotRead() })
}

// tryRestart writes at an offset.
func (x *fixture) tryRestart(name string, offset int, content []byte) error {
	return WriteAt(x.Fs, name, restart, int64(offset), content)
}

// testRestartReplaced lets another client replace the file right before each kind of request that follows the first
// bytes.
func (x *fixture) testRestartReplaced() {
	small, large := 100, 3*x.partSize+7
	for _, test := range []struct {
		label, operation string
		size             int
		window           exception
	}{
		{"small-read", "GetObject", small, ""},
		{"small-published", "PutObject", small, replacedByPut},
		{"large-read", "GetObject", large, ""},
		{"large-copied", "UploadPartCopy", large, ""},
		{"large-published", "CompleteMultipartUpload", large, replacedByCompletion},
	} {
		if test.operation == "UploadPartCopy" && !x.profile.PartCopy {
			continue // the driver itself reads all bytes that stay
		}
		x.run(test.label, func(x *fixture) {
			theirs := random(test.size + 1)
			x.put("file", random(test.size))
			f := x.openAt("file", restart, 1)
			x.must(errorOf(f.Write([]byte("written"))))
			var once sync.Once
			replaced := false
			x.spy.Before(func(_ context.Context, operation string, _ any) error {
				if operation == test.operation {
					once.Do(func() {
						replaced = true
						x.put("file", theirs)
					})
				}
				return nil
			})
			err := f.Close()
			x.spy.Before(nil)
			if !replaced {
				x.Fatalf("no %s was sent", test.operation)
			}
			if test.window == "" || !x.hasException(test.window) {
				wantError(x, err, syscall.ESTALE)
				x.wantContent("file", theirs)
			}
			x.wantNoUploads("file")
		})
	}
}

// testRestNotRead lets S3 refuse to return the bytes that an upload at an offset keeps. The file must not change.
func (x *fixture) testRestNotRead() {
	for label, size := range map[string]int{"small": 100, "parts": 3*x.partSize + 7} {
		x.run(label, func(x *fixture) {
			x.put("file", random(size))
			f := x.openAt("file", restart, 1)
			x.must(errorOf(f.Write([]byte("written"))))
			x.failRequests(always, "GetObject", "UploadPartCopy")
			wantError(x, f.Close(), syscall.EAGAIN)
			x.spy.Before(nil)
			x.wantContent("file", random(size))
			x.wantNoUploads("file")
		})
	}
}
