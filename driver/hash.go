package driver

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// Hash returns the hash of the bytes [from, to) of a file, and where they end. A negative to, or one beyond the end,
// stands for the end of the file. The algorithms are SHA-256, SHA-512, SHA-1, MD5 and CRC32; others are
// errors.ErrUnsupported. The end of ctx ends it.
//
// S3 keeps a checksum of most objects. Where it is one of the whole object, and of the algorithm, one request asks
// for it. Everything else is read, in a second one.
//
// An offset beyond the end is an fs.ErrInvalid, a directory EISDIR.
func (f *Fs) Hash(ctx context.Context, name, algorithm string, from, to int64) (sum []byte, end int64, err error) {
	sum, end, err = f.WithContext(ctx).hash(name, algorithm, from, to)
	return sum, end, s3error.PathError("hash", name, err)
}

func (f *Fs) hash(name, algorithm string, from, to int64) (sum []byte, end int64, err error) {
	key, err := f.keys.Key(name)
	h := s3object.NewHash(algorithm)
	switch {
	case err != nil:
		return nil, 0, err
	case h == nil:
		return nil, 0, errors.ErrUnsupported
	case f.keys.IsRoot(key):
		return nil, 0, syscall.EISDIR
	case from < 0:
		return nil, 0, s3error.ErrInvalid
	}
	if err := f.refuseDirectory(f.ctx, name, key); err != nil {
		return nil, 0, err
	}
	if from == 0 {
		sum, end, err = f.bucket.StoredHash(f.ctx, key, algorithm)
		if err == nil && sum != nil && (to < 0 || to >= end) {
			return sum, end, nil
		}
	}
	if err == nil {
		end, err = f.readInto(h, name, from, to)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := f.find.Dir(f.ctx, key); err == nil {
			return nil, 0, syscall.EISDIR
		}
	}
	if err != nil {
		return nil, 0, err
	}
	return h.Sum(nil), end, nil
}

// readInto reads the bytes [from, to) of a file, or as many of them as it has, and returns where they end.
func (f *Fs) readInto(w io.Writer, name string, from, to int64) (until int64, err error) {
	file, err := f.OpenAt(name, os.O_RDONLY, from)
	if err != nil {
		return 0, errors.Unwrap(err)
	}
	defer file.Close() // nothing was written
	wait, end, err := f.opts.BeginHash()
	if err != nil {
		return 0, err
	}
	defer end()
	w = &pacedWriter{w, func(bytes int) error { return wait(f.ctx, bytes) }}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if to < 0 || to >= info.Size() {
		to = info.Size()
		_, err = io.Copy(w, file)
	} else {
		_, err = io.CopyN(w, file, max(0, to-from))
	}
	return to, err
}

// A pacedWriter waits after the bytes that it has written, as long as their number asks for.
type pacedWriter struct {
	io.Writer
	wait func(bytes int) error
}

func (w *pacedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err == nil {
		err = w.wait(n)
	}
	return n, err
}
