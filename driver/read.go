package driver

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// A Reader is a file that is open for reading. It reads the same version of the object to its end, even over several
// connections. If another client replaces the object while it is read, the error is ESTALE. Only Abort may be called
// while another method runs.
type Reader struct {
	name    string
	ctx     context.Context
	cancel  context.CancelCauseFunc
	bucket  *s3api.Bucket
	version s3api.Version
	info    *file.TransferInfo
	content *file.Reader
	closed  bool
}

// OpenReader opens a file for a download that begins at offset. It requests the object at once. If offset is beyond the
// end, the error is fs.ErrInvalid. Canceling ctx stops the download.
func (f *Fs) OpenReader(ctx context.Context, name string, offset int64) (*Reader, error) {
	ctx = f.opts.withRetries(ctx)
	key, err := f.fileKey(ctx, name, offset)
	if err != nil {
		return nil, s3error.PathError("open", name, err)
	}
	r, err := f.openReader(ctx, name, key, offset)
	if err != nil {
		return nil, s3error.PathError("open", name, err)
	}
	return r, nil
}

func (f *Fs) openReader(ctx context.Context, name, key string, offset int64) (*Reader, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	v, a, body, err := f.bucket.Get(ctx, key, offset)
	if offset > 0 && errors.Is(err, fs.ErrInvalid) {
		// The object ends at or before offset. This is not an error if offset is the end of the file, but few servers
		// return the size together with the error.
		var headErr error
		if v, a, headErr = f.bucket.Head(ctx, key); headErr != nil || v.Size == offset {
			err = headErr
		}
	}
	if errors.Is(err, s3error.Archived) && f.opts.Restore.Days > 0 {
		err = f.restore(ctx, key, err)
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	var result s3api.Result
	var stream io.ReadCloser // nil if the object ends at offset
	if body != nil {
		result, stream = body.Result, body
	}
	return &Reader{
		name: name, ctx: ctx, cancel: cancel, bucket: f.bucket, version: v,
		info: &file.TransferInfo{Info: file.New(f.keys.Base(key), &v, &a), Result: result},
		content: file.NewReader(
			ctx, f.bucket, v, offset, stream, f.opts.Memory, f.opts.Endpoint.stats, f.opts.DownloadConcurrency),
	}, nil
}

// restore asks S3 to restore an object. If S3 refuses, it returns the error archived.
func (f *Fs) restore(ctx context.Context, key string, archived error) error {
	err := f.bucket.Restore(ctx, key, f.opts.Restore)
	if errors.Is(err, s3error.Archived) {
		return err
	}
	f.opts.Logger.Warn("archived object not restored", "bucket", f.bucket.Name, "key", key, "err", err)
	return archived
}

// Read reads the next bytes.
func (r *Reader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, s3error.PathError("read", r.name, fs.ErrClosed)
	}
	n, err := r.content.Read(p)
	return n, r.readError(err)
}

// WriteTo writes the remaining bytes to w.
func (r *Reader) WriteTo(w io.Writer) (written int64, err error) {
	if r.closed {
		return 0, s3error.PathError("read", r.name, fs.ErrClosed)
	}
	for {
		next, err := r.content.Next()
		switch {
		case errors.Is(err, io.EOF):
			return written, nil
		case err != nil:
			return written, r.readError(err)
		}
		n, err := w.Write(next)
		written += int64(n)
		r.content.Advance(n)
		if err != nil {
			return written, err
		}
	}
}

func (r *Reader) readError(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return s3error.PathError("read", r.name, err)
}

// ReadAt reads from an offset with a separate request. It does not change the offset of Read, and may be called in
// parallel.
func (r *Reader) ReadAt(p []byte, offset int64) (int, error) {
	if r.closed {
		return 0, s3error.PathError("read", r.name, fs.ErrClosed)
	}
	if offset < 0 {
		return 0, s3error.PathError("read", r.name, s3error.ErrInvalid)
	}
	part := file.NewRange(r.ctx, r.bucket, r.version, offset, min(offset+int64(len(p)), r.version.Size))
	defer part.Close()
	n := 0
	for n < len(p) {
		m, err := part.Read(p[n:])
		n += m
		if err != nil {
			return n, r.readError(err)
		}
	}
	return n, nil
}

// Seek sets the offset of the next Read. It sends no request, and does nothing if the offset does not change.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	if r.closed {
		return 0, s3error.PathError("seek", r.name, fs.ErrClosed)
	}
	switch whence {
	case io.SeekCurrent:
		offset += r.content.Offset()
	case io.SeekEnd:
		offset += r.version.Size
	}
	if offset < 0 || whence < io.SeekStart || whence > io.SeekEnd {
		return 0, s3error.PathError("seek", r.name, s3error.ErrInvalid)
	}
	r.content.SeekTo(offset)
	return offset, nil
}

// Stat describes the version of the object that is read.
func (r *Reader) Stat() (fs.FileInfo, error) { return r.info, nil }

// Abort ends the download. Read and Close then return cause.
func (r *Reader) Abort(cause error) { r.cancel(cause) }

// Close returns the connection to the pool if all bytes were read, and closes it otherwise.
func (r *Reader) Close() error {
	if r.closed {
		return s3error.PathError("close", r.name, fs.ErrClosed)
	}
	r.closed = true
	err := context.Cause(r.ctx)
	r.content.Close()
	r.cancel(nil)
	return s3error.PathError("close", r.name, err)
}
