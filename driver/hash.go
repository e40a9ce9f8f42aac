package driver

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// Hash returns the hash of the bytes [from, to) of a file, and the offset at which they end. If to is negative or
// beyond the end, the range ends at the end of the file. The supported algorithms are SHA-256, SHA-512, SHA-1, MD5 and
// CRC32; for others the error is errors.ErrUnsupported.
//
// If S3 has a checksum of the whole object with the same algorithm, one request is enough. Otherwise a second request
// reads the file.
//
// The error is fs.ErrInvalid for an offset beyond the end, and EISDIR for a directory.
func (f *Fs) Hash(ctx context.Context, name, algorithm string, from, to int64) (sum []byte, end int64, err error) {
	sum, end, err = f.hash(f.opts.withRetries(ctx), name, algorithm, from, to)
	return sum, end, s3error.PathError("hash", name, err)
}

func (f *Fs) hash(
	ctx context.Context, name, algorithm string, from, to int64,
) (sum []byte, end int64, err error) {
	h := s3object.NewHash(algorithm)
	if h == nil {
		return nil, 0, errors.ErrUnsupported
	}
	key, err := f.fileKey(ctx, name, from)
	if err != nil {
		return nil, 0, err
	}
	if from == 0 {
		sum, end, err = f.bucket.StoredHash(ctx, key, algorithm)
		if err == nil && sum != nil && (to < 0 || to >= end) {
			return sum, end, nil
		}
	}
	if err == nil {
		end, err = f.readInto(ctx, h, name, from, to)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := f.findDir(ctx, key); err == nil {
			return nil, 0, syscall.EISDIR
		}
	}
	if err != nil {
		return nil, 0, err
	}
	return h.Sum(nil), end, nil
}

// readInto writes the bytes [from, to) of a file to w, or as many of them as the file has, and returns the offset at
// which they end.
func (f *Fs) readInto(ctx context.Context, w io.Writer, name string, from, to int64) (until int64, err error) {
	r, err := f.OpenReader(ctx, name, from)
	if err != nil {
		return 0, errors.Unwrap(err)
	}
	defer r.Close() // nothing was written, so the error does not matter
	wait, end, err := f.opts.BeginHash()
	if err != nil {
		return 0, err
	}
	defer end()
	w = &pacedWriter{w, func(bytes int) error { return wait(ctx, bytes) }}
	if to < 0 || to >= r.version.Size {
		to = r.version.Size
		_, err = io.Copy(w, r)
	} else {
		_, err = io.CopyN(w, r, max(0, to-from))
	}
	return to, err
}

// A pacedWriter waits after each write for as long as its number of bytes requires.
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
