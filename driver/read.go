package driver

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// A reader is a file open for reading.
type reader struct {
	file.Handle
	ctx     context.Context
	cancel  context.CancelCauseFunc
	bucket  *s3api.Bucket
	version s3api.Version
	info    *file.Stored
	content *file.Reader
}

func (f *Fs) openReader(name, key string, offset int64) (*reader, error) {
	ctx, cancel := context.WithCancelCause(f.ctx)
	v, a, body, err := f.bucket.Get(ctx, key, offset)
	if offset > 0 && errors.Is(err, fs.ErrInvalid) {
		// There is no byte at offset. Where it is the end that is no error, but few servers tell the size with the
		// refusal.
		var headErr error
		if v, a, headErr = f.bucket.Head(ctx, key); headErr != nil || v.Size == offset {
			err = headErr
		}
	}
	if errors.Is(err, s3error.Archived) && f.opts.Restore.Days > 0 {
		err = f.restore(key, err)
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	var answer s3api.Stored
	var stream io.ReadCloser // nil where there is no byte at offset
	if body != nil {
		answer, stream = body.Answer, body
	}
	return &reader{
		Handle: file.Handle{FileName: name, Unsupported: syscall.EBADF},
		ctx:    ctx, cancel: cancel, bucket: f.bucket, version: v,
		info: &file.Stored{Info: file.New(f.keys.Base(key), &v, &a), Answer: answer},
		content: file.NewReader(
			ctx, f.bucket, v, offset, stream, f.opts.Memory, f.opts.Endpoint.stats, f.opts.DownloadConcurrency),
	}, nil
}

// restore asks S3 to restore an object. Where it cannot be restored, the object is archived as before.
func (f *Fs) restore(key string, archived error) error {
	err := f.bucket.Restore(f.ctx, key, f.opts.Restore)
	if errors.Is(err, s3error.Archived) {
		return err
	}
	f.opts.Logger.Warn("S3 does not restore an archived object", "bucket", f.bucket.Name, "key", key, "err", err)
	return archived
}

// Read reads the bytes that follow those read before.
func (r *reader) Read(p []byte) (int, error) {
	if r.Closed {
		return 0, r.Refuse("read")
	}
	n, err := r.content.Read(p)
	return n, r.readError(err)
}

// WriteTo writes all that is left to w.
func (r *reader) WriteTo(w io.Writer) (written int64, err error) {
	if r.Closed {
		return 0, r.Refuse("read")
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

func (r *reader) readError(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return s3error.PathError("read", r.FileName, err)
}

// ReadAt reads from an offset, by a request of its own. It neither moves the offset of Read nor minds other calls at
// the same time.
func (r *reader) ReadAt(p []byte, offset int64) (int, error) {
	if r.Closed {
		return 0, r.Refuse("read")
	}
	if offset < 0 {
		return 0, s3error.PathError("read", r.FileName, s3error.ErrInvalid)
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

// Seek sets where Read goes on. It makes no request, and where the offset is the present one it changes nothing at all.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	if r.Closed {
		return 0, r.Refuse("seek")
	}
	switch whence {
	case io.SeekCurrent:
		offset += r.content.Offset()
	case io.SeekEnd:
		offset += r.version.Size
	}
	if offset < 0 || whence < io.SeekStart || whence > io.SeekEnd {
		return 0, s3error.PathError("seek", r.FileName, s3error.ErrInvalid)
	}
	r.content.SeekTo(offset)
	return offset, nil
}

// Stat describes the version of the object that is read.
func (r *reader) Stat() (fs.FileInfo, error) { return r.info, nil }

// Abort ends reading: what reads or will read, and Close, returns cause.
func (r *reader) Abort(cause error) { r.cancel(cause) }

// Close gives the connection back, where all was read, or ends it.
func (r *reader) Close() error {
	if r.Closed {
		return r.Refuse("close")
	}
	r.Closed = true
	err := context.Cause(r.ctx)
	r.content.Close()
	r.cancel(nil)
	return s3error.PathError("close", r.FileName, err)
}
