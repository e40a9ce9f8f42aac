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

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"
)

func testRead(t *testing.T, h Harness) {
	x := h.open(t, nil)
	content := random(300_000)
	x.put("file.txt", content)
	x.put("empty", nil)
	x.putAll("dir/file")
	size := int64(len(content))

	x.run("whole", func(x *fixture) { equal(x, "file", x.read("file.txt"), content) })
	x.run("empty", func(x *fixture) { equal(x, "file", x.read("empty"), nil) })
	for label, offset := range map[string]int64{"from-1": 1, "from-the-middle": size / 2, "from-the-last": size - 1,
		"from-the-end": size} {
		x.run(label, func(x *fixture) {
			f := x.openAt("file.txt", os.O_RDONLY, offset)
			defer x.close(f)
			// An FTP server seeks to the same offset again.
			if at, err := f.Seek(offset, io.SeekStart); err != nil || at != offset {
				x.Errorf("Seek: %d, %v", at, err)
			}
			got, err := io.ReadAll(f)
			x.must(err)
			equal(x, "file", got, content[offset:])
			info, err := f.Stat()
			if err != nil || info.Size() != size || info.Name() != "file.txt" {
				x.Errorf("got %v, %v", info, err)
			}
		})
	}
	for _, test := range []struct {
		label, name string
		offset      int64
		kind        error
	}{
		{"beyond-the-end", "file.txt", size + 1, fs.ErrInvalid},
		{"beyond-the-end-of-nothing", "empty", 1, fs.ErrInvalid},
		{"before-the-beginning", "file.txt", -1, fs.ErrInvalid},
		{"missing", "missing", 0, fs.ErrNotExist},
		{"missing-from-1", "missing", 1, fs.ErrNotExist},
		{"directory", "dir", 0, fs.ErrNotExist},
		{"directory-with-a-slash", "dir/", 0, syscall.EISDIR},
		{"file-with-a-slash", "file.txt/", 0, syscall.ENOTDIR},
		{"root", "/", 0, syscall.EISDIR},
	} {
		x.run(test.label, func(x *fixture) {
			wantError(x, errorOf(x.OpenAt(test.name, os.O_RDONLY, test.offset)), test.kind)
		})
	}
	x.run("write-to", func(x *fixture) {
		f := x.openAt("file.txt", os.O_RDONLY, 7)
		defer x.close(f)
		var got bytes.Buffer
		n, err := f.(io.WriterTo).WriteTo(&got)
		if err != nil || n != size-7 {
			x.Errorf("%d bytes, %v", n, err)
		}
		equal(x, "file", got.Bytes(), content[7:])
	})
	x.run("write-to-full", func(x *fixture) {
		f := x.openAt("file.txt", os.O_RDONLY, 0)
		defer x.close(f)
		wantError(x, errorOf(f.(io.WriterTo).WriteTo(&limitedWriter{left: 100_000})), syscall.ENOSPC)
	})
	x.run("seek", func(x *fixture) { x.testSeek("file.txt", content) })
	x.run("read-at", func(x *fixture) { x.testReadAt("file.txt", content) })
	x.run("not-for-writing", func(x *fixture) {
		f, err := x.Open("file.txt")
		x.must(err)
		wantError(x, errorOf(f.Write([]byte("x"))), syscall.EBADF)
		wantError(x, errorOf(f.WriteAt([]byte("x"), 0)), syscall.EBADF)
		wantError(x, errorOf(f.WriteString("x")), syscall.EBADF)
		wantError(x, f.Truncate(0), syscall.EBADF)
		wantError(x, errorOf(f.Readdir(0)), syscall.EBADF)
		x.close(f)
		wantError(x, errorOf(f.Read(make([]byte, 1))), fs.ErrClosed)
		wantError(x, errorOf(f.ReadAt(make([]byte, 1), 0)), fs.ErrClosed)
		wantError(x, errorOf(f.Seek(0, io.SeekStart)), fs.ErrClosed)
		wantError(x, f.Close(), fs.ErrClosed)
	})
	x.run("broken", func(x *fixture) { x.testBroken("file.txt", content) })
	x.run("ended", func(x *fixture) { x.testReadingEnded("file.txt", content) })
	x.run("replaced", func(x *fixture) { x.testReplaced() })
}

func (x *fixture) openAt(name string, flag int, offset int64) afero.File {
	x.Helper()
	f, err := x.OpenAt(name, flag, offset)
	x.must(err)
	return f
}

// A limitedWriter is a disk with room for a few bytes.
type limitedWriter struct{ left int }

func (w *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (x *fixture) testSeek(name string, content []byte) {
	size := int64(len(content))
	f := x.openAt(name, os.O_RDONLY, 0)
	defer x.close(f)
	for _, step := range []struct {
		offset int64
		whence int
		at     int64
	}{
		{100_000, io.SeekStart, 100_000},
		{-50_000, io.SeekCurrent, 50_010},
		{-10, io.SeekEnd, size - 10},
		{0, io.SeekStart, 0},
	} {
		at, err := f.Seek(step.offset, step.whence)
		if err != nil || at != step.at {
			x.Fatalf("Seek(%d, %d): %d, %v; want %d", step.offset, step.whence, at, err, step.at)
		}
		got := make([]byte, 10)
		x.must(errorOf(io.ReadFull(f, got)))
		equal(x, "ten bytes", got, content[at:at+10])
	}
	if _, err := f.Seek(size+1, io.SeekStart); err != nil {
		x.Error(err)
	}
	if n, err := f.Read(make([]byte, 10)); n != 0 || !errors.Is(err, io.EOF) {
		x.Errorf("read beyond the end: %d bytes, %v", n, err)
	}
	wantError(x, errorOf(f.Seek(-1, io.SeekStart)), fs.ErrInvalid)
	wantError(x, errorOf(f.Seek(0, 3)), fs.ErrInvalid)
}

func (x *fixture) testReadAt(name string, content []byte) {
	size := int64(len(content))
	f := x.openAt(name, os.O_RDONLY, 0)
	defer x.close(f)
	for _, test := range []struct{ offset, length, want int64 }{
		{0, 10, 10}, {12_345, 100_000, 100_000}, {size - 5, 5, 5}, {size - 5, 10, 5}, {size, 10, 0}, {size + 9, 10, 0},
		{3, 0, 0},
	} {
		got := make([]byte, test.length)
		n, err := f.ReadAt(got, test.offset)
		if int64(n) != test.want || (test.want < test.length) != errors.Is(err, io.EOF) {
			x.Errorf("%d bytes at %d: %d, %v; want %d", test.length, test.offset, n, err, test.want)
		}
		if n > 0 {
			equal(x, "part", got[:n], content[test.offset:test.offset+int64(n)])
		}
	}
	wantError(x, errorOf(f.ReadAt(make([]byte, 1), -1)), fs.ErrInvalid)
	rest, err := io.ReadAll(f)
	x.must(err)
	equal(x, "file after ReadAt", rest, content)
}

// testBroken interrupts connections in the middle of an object. Either the reader does not notice, or it gets an error
// that bytes are missing.
func (x *fixture) testBroken(name string, content []byte) {
	const bytesEach = 70_000
	breakAfter := func(left int64, err error) {
		x.spy.After(func(_ string, out any) error {
			if get, ok := out.(*s3.GetObjectOutput); ok {
				get.Body = &TruncatedBody{ReadCloser: get.Body, Left: left, Err: err}
			}
			return nil
		})
	}
	defer x.spy.After(nil)
	for label, err := range map[string]error{
		"reset": syscall.ECONNRESET, "short": io.ErrUnexpectedEOF, "end-too-early": io.EOF,
	} {
		x.run(label, func(x *fixture) {
			breakAfter(bytesEach, err)
			x.spy.Reset()
			equal(x, "file", x.read(name), content)
			if n, want := x.spy.Total(), (len(content)+bytesEach-1)/bytesEach+x.requestsFor(repeatedHeads); n != want {
				x.Errorf("got %d requests, want %d", n, want)
			}
		})
	}
	x.run("for-good", func(x *fixture) {
		f := x.openAt(name, os.O_RDONLY, 0)
		defer x.close(f)
		breakAfter(0, syscall.ECONNRESET)
		x.must(errorOf(f.Seek(10, io.SeekStart)))
		x.spy.Reset()
		wantError(x, errorOf(io.ReadAll(f)), syscall.EAGAIN)
		if n := x.spy.Total(); n != 5 {
			x.Errorf("got %d requests, want 5", n)
		}
	})
	x.run("checksum", func(x *fixture) {
		breakAfter(int64(len(content)), errors.New("checksum did not match"))
		f := x.openAt(name, os.O_RDONLY, 0)
		defer x.close(f)
		wantError(x, errorOf(io.ReadAll(f)), syscall.EAGAIN)
	})
}

// testReadingEnded aborts readers.
func (x *fixture) testReadingEnded(name string, content []byte) {
	cause := errors.New("ended by the test")
	file := x.openAt(name, os.O_RDONLY, 0)
	file.(aborter).Abort(cause)
	n, err := file.(io.WriterTo).WriteTo(io.Discard)
	wantError(x, err, cause)
	if n == int64(len(content)) {
		x.Error("the whole file was read")
	}
	wantError(x, file.Close(), cause)

	ctx, cancel := context.WithCancel(x.Context())
	session := x.session(ctx, nil)
	f, err := session.Open(name)
	x.must(err)
	cancel()
	wantError(x, errorOf(io.ReadAll(f)), context.Canceled)
	wantError(x, f.Close(), context.Canceled)
	wantError(x, errorOf(session.Open(name)), context.Canceled)
}

// testReplaced replaces an object while it is read. No reader may get bytes of both objects.
func (x *fixture) testReplaced() {
	x.put("replaced", random(200_000))
	f := x.openAt("replaced", os.O_RDONLY, 0)
	defer x.close(f)
	x.must(errorOf(io.ReadFull(f, make([]byte, 10))))
	x.put("replaced", random(200_001))
	x.must(errorOf(f.Seek(100_000, io.SeekStart)))
	wantError(x, errorOf(f.Read(make([]byte, 10))), syscall.ESTALE)
	wantError(x, errorOf(f.ReadAt(make([]byte, 10), 0)), syscall.ESTALE)

	x.delete("replaced")
	wantError(x, errorOf(f.ReadAt(make([]byte, 10), 0)), fs.ErrNotExist)
}
