package drivertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/aws/aws-sdk-go-v2/aws"
)

func testWrite(t *testing.T, h Harness) {
	x := h.open(t, nil)
	for label, size := range map[string]int{
		"empty": 0, "one-byte": 1, "block": 64 << 10, "block-and-one": 64<<10 + 1, "part-less-one": h.PartSize - 1,
		"part":         h.PartSize,
		"part-and-one": h.PartSize + 1, "two-parts": 2 * h.PartSize, "parts": 3*h.PartSize + 1000,
	} {
		x.run(label, func(x *fixture) {
			content := random(size)
			x.write(label, content)
			x.wantContent(label, content)
			f, err := x.Create(label + "-copied")
			x.must(err)
			n, err := f.(io.ReaderFrom).ReadFrom(iotest.HalfReader(bytes.NewReader(content)))
			if err != nil || n != int64(size) {
				x.Errorf("ReadFrom: %d, %v", n, err)
			}
			x.close(f)
			x.wantContent(label+"-copied", content)
		})
	}
	x.run("replace", func(x *fixture) {
		x.write("replace", random(1000))
		x.write("replace", random(10))
		x.wantContent("replace", random(10))
	})
	x.run("without-parents", func(x *fixture) {
		x.write("no/such/directory/file", random(10))
		x.wantContent("no/such/directory/file", random(10))
	})
	x.run("content-type", func(x *fixture) {
		for name, want := range map[string]string{"page.html": "text/html",
			"x.unknown-type": "application/octet-stream", "none": "application/octet-stream"} {
			x.write(name, nil)
			if got := aws.ToString(x.head(name).ContentType); got != want {
				x.Errorf("%s has the content type %q, want %q", name, got, want)
			}
		}
	})
	x.run("invisible-before-close", func(x *fixture) {
		f, err := x.Create("invisible")
		x.must(err)
		x.must(errorOf(f.Write(random(h.PartSize + 1))))
		if x.exists("invisible") {
			x.Error("the object is visible before the upload is complete")
		}
		if len(x.uploads("invisible")) != 1 {
			x.Error("there is no upload, so the checks for open uploads prove nothing")
		}
		x.close(f)
		x.wantNoUploads("invisible")
		x.wantContent("invisible", random(h.PartSize+1))
	})
	x.run("exclusive", func(x *fixture) { x.testExclusive() })
	x.run("flags", func(x *fixture) { x.testFlags() })
	x.run("handle", func(x *fixture) { x.testWriteHandle() })
}

func (x *fixture) testExclusive() {
	const flag = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	x.put("exists", random(3))
	wantError(x, errorOf(x.OpenFile("exists", flag, 0)), fs.ErrExist)
	for label, size := range map[string]int{"exclusive": 10, "exclusive-parts": x.partSize + 1} {
		f := x.openAt(label, flag, 0)
		x.must(errorOf(f.Write(random(size))))
		x.put(label, random(5)) // someone else is faster
		wantError(x, f.Close(), fs.ErrExist)
		x.wantContent(label, random(5))
		x.wantNoUploads(label)
	}
	f := x.openAt("alone", flag, 0)
	x.close(f)
	x.wantContent("alone", nil)
}

func (x *fixture) testFlags() {
	x.put("file", random(10))
	wantError(x, errorOf(x.OpenFile("missing", os.O_WRONLY, 0)), fs.ErrNotExist)
	wantError(x, errorOf(x.OpenFile("missing", os.O_WRONLY|os.O_APPEND, 0)), fs.ErrNotExist)
	wantError(x, errorOf(x.OpenFile("file", os.O_RDWR, 0)), errors.ErrUnsupported)
	wantError(x, errorOf(x.OpenFile("/", os.O_WRONLY|os.O_CREATE, 0)), syscall.EISDIR)
	wantError(x, errorOf(x.Create("")), syscall.EISDIR)
	wantError(x, errorOf(x.Create("new/")), syscall.EISDIR)

	f := x.openAt("file", os.O_WRONLY|os.O_TRUNC, 0)
	x.close(f)
	x.wantContent("file", nil)
}

func (x *fixture) testWriteHandle() {
	f, err := x.Create("dir/handle.txt")
	x.must(err)
	if f.Name() != "dir/handle.txt" {
		x.Errorf("unexpected name %q", f.Name())
	}
	for range 3 {
		if n, err := f.WriteString("abc"); n != 3 || err != nil {
			x.Errorf("WriteString: %d, %v", n, err)
		}
	}
	if n, err := f.WriteAt([]byte("def"), 9); n != 3 || err != nil {
		x.Errorf("WriteAt at the end: %d, %v", n, err)
	}
	wantError(x, errorOf(f.WriteAt([]byte("def"), 3)), errors.ErrUnsupported)
	for whence, offset := range map[int]int64{io.SeekStart: 12, io.SeekCurrent: 0, io.SeekEnd: 0} {
		if at, err := f.Seek(offset, whence); at != 12 || err != nil {
			x.Errorf("Seek(%d, %d): %d, %v", offset, whence, at, err)
		}
	}
	wantError(x, errorOf(f.Seek(0, io.SeekStart)), errors.ErrUnsupported)
	wantNoError(x, errors.Join(f.Truncate(12), f.Sync()))
	wantError(x, f.Truncate(5), errors.ErrUnsupported)
	wantError(x, errorOf(f.Read(make([]byte, 1))), syscall.EBADF)
	if info, err := f.Stat(); err != nil || info.Size() != 12 || info.Name() != "handle.txt" {
		x.Errorf("got %v, %v", info, err)
	}
	x.close(f)
	x.wantContent("dir/handle.txt", []byte("abcabcabcdef"))
	wantError(x, errorOf(f.Write([]byte("x"))), fs.ErrClosed)
	wantError(x, errorOf(f.Write(nil)), fs.ErrClosed)
	wantError(x, f.Close(), fs.ErrClosed)
	wantError(x, f.Truncate(12), fs.ErrClosed)
}

func testAppend(t *testing.T, h Harness) {
	const add = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	x := h.open(t, nil)
	for _, test := range []struct {
		label              string
		old, written, kept int // in bytes; old is -1 for no object
	}{
		{"new", -1, 10, 0},
		{"new-and-nothing", -1, 0, 0},
		{"to-nothing", 0, 10, 0},
		{"small", 10, 10, 10},
		{"small-to-parts", 1000, 2*h.PartSize + 9, 1000},
		{"less-than-a-part", h.PartSize - 1, 10, h.PartSize - 1},
		{"a-part", h.PartSize, 10, h.PartSize},
		{"parts", 2*h.PartSize + 3, h.PartSize + 9, 2*h.PartSize + 3},
		{"nothing", 10, 0, 10},
		{"nothing-to-parts", h.PartSize + 3, 0, h.PartSize + 3},
	} {
		x.run(test.label, func(x *fixture) {
			old := random(max(test.old, 0))
			if test.old >= 0 {
				x.put(test.label, old)
			}
			f := x.openAt(test.label, add, 0)
			if at, err := f.Seek(int64(test.kept), io.SeekStart); at != int64(test.kept) || err != nil {
				x.Errorf("Seek: %d, %v", at, err)
			}
			// other bytes than the ones that stay
			written := random(test.written + 1)[1:]
			x.must(errorOf(io.Copy(f, bytes.NewReader(written))))
			x.close(f)
			x.wantContent(test.label, append(old[:test.kept:test.kept], written...))
			x.wantNoUploads(test.label)
		})
	}
	for label, size := range map[string]int{"replaced": 10, "replaced-parts": h.PartSize + 1} {
		x.run(label, func(x *fixture) {
			x.put(label, random(size))
			f := x.openAt(label, add, 0)
			x.must(errorOf(f.Write(random(10))))
			x.put(label, random(size+1))
			wantError(x, f.Close(), syscall.ESTALE)
			x.wantContent(label, random(size+1))
			x.wantNoUploads(label)
		})
	}
}

// testUnpublished ends uploads in every way except by closing them successfully. The object must not change, and no
// upload may stay open.
func testUnpublished(t *testing.T, h Harness) {
	errTest := errors.New("made by the test")
	for _, test := range []struct {
		label  string
		kind   error           // error that Close must return
		before func(*fixture)  // before the upload; may be nil
		after  func(u *upload) // after its first bytes; may be nil
	}{
		{"abort", errTest, nil, func(u *upload) { u.File.(aborter).Abort(errTest) }},
		{"cancel", context.Canceled, nil, func(u *upload) { u.cancel() }},
		{"source-fails", errTest, nil, func(u *upload) { u.copy(iotest.ErrReader(errTest)) }},
		{"source-ends-unexpectedly", io.ErrUnexpectedEOF, nil, func(u *upload) {
			u.copy(io.MultiReader(bytes.NewReader(random(100)), iotest.ErrReader(io.ErrUnexpectedEOF)))
		}},
		{"refused-before-commit", errTest, nil, func(u *upload) { u.beforeCommit = func() error { return errTest } }},
		{"canceled-before-commit", context.Canceled, nil, func(u *upload) {
			u.beforeCommit = func() error { u.cancel(); return nil }
		}},
		{"commit-fails", syscall.EAGAIN, func(x *fixture) {
			x.failRequests(always, "PutObject", "CompleteMultipartUpload")
		}, nil},
		{"part-fails", syscall.EAGAIN, func(x *fixture) { x.failRequests(always, "PutObject", "UploadPart") }, nil},
		{"create-fails", syscall.EAGAIN, func(x *fixture) {
			x.failRequests(always, "PutObject", "CreateMultipartUpload")
		}, nil},
		{"abort-fails-twice", errTest, func(x *fixture) { x.failRequests(2, "AbortMultipartUpload") }, func(u *upload) {
			u.File.(aborter).Abort(errTest)
		}},
	} {
		for label, size := range map[string]int{"nothing": 0, "small": 1000, "part": h.PartSize,
			"parts": 2*h.PartSize + 1} {
			t.Run(test.label+"-"+label, func(t *testing.T) {
				x := h.open(t, nil)
				x.put("old", random(77))
				for _, name := range []string{"old", "new"} {
					if test.before != nil {
						test.before(x)
					}
					u := x.upload(name, size)
					if test.after != nil {
						test.after(u)
					}
					wantError(t, u.close(), test.kind)
					x.wantNoUploads(name)
				}
				x.wantKeys("old")
				x.wantContent("old", random(77))
			})
		}
	}
	t.Run("canceled-while-created", func(t *testing.T) { testCanceledWhileCreated(t, h) })
	t.Run("canceled-while-committed", func(t *testing.T) { testCanceledWhileCommitted(t, h) })
	t.Run("abort-while-writing", func(t *testing.T) { testAbortWhileWriting(t, h) })
}
