package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const (
	// maxBreaks is how often in a row the bytes of an object may end early before reading fails. After each comes a request that
	// the SDK itself tries several times.
	maxBreaks = 4

	// breakDelay is waited after the second break in a row, and twice as long after each further.
	breakDelay = 100 * time.Millisecond

	// copyBuffer is what WriteTo holds: enough to spare system calls, little enough for a thousand downloads.
	copyBuffer = 64 << 10
)

// A reader is a file open for reading.
type reader struct {
	handle
	bytes  span
	cancel context.CancelCauseFunc
	info   *fileInfo
}

func (f *Fs) openReader(name, key string, offset int64) (*reader, error) {
	ctx, cancel := context.WithCancelCause(f.ctx)
	v, a, body, err := f.bucket.get(ctx, key, offset)
	if offset > 0 && errors.Is(err, fs.ErrInvalid) {
		// There is no byte at offset. Where it is the end that is no error, but few servers tell the size with the refusal.
		var headErr error
		if v, a, headErr = f.bucket.head(ctx, key); headErr != nil || v.size == offset {
			err = headErr
		}
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	return &reader{
		handle: handle{name: name, kind: syscall.EBADF},
		bytes:  span{ctx: ctx, bucket: f.bucket, version: v, offset: offset, end: v.size, body: body},
		cancel: cancel,
		info:   file(f.keys.base(key), &v, &a),
	}, nil
}

// Read reads the bytes that follow those read before.
func (r *reader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, r.refuse("read")
	}
	n, err := r.bytes.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = pathError("read", r.name, err)
	}
	return n, err
}

// WriteTo writes all that is left to w.
func (r *reader) WriteTo(w io.Writer) (int64, error) {
	buffer := make([]byte, min(copyBuffer, max(r.bytes.end-r.bytes.offset, 1)))
	var written int64
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			n, err := w.Write(buffer[:n])
			written += int64(n)
			if err != nil {
				return written, err
			}
		}
		if errors.Is(err, io.EOF) {
			return written, nil
		}
		if err != nil {
			return written, err
		}
	}
}

// ReadAt reads from an offset, by a request of its own. It neither moves the offset of Read nor minds other calls at the same
// time.
func (r *reader) ReadAt(p []byte, offset int64) (int, error) {
	if r.closed {
		return 0, r.refuse("read")
	}
	if offset < 0 {
		return 0, pathError("read", r.name, errInvalid)
	}
	v := r.bytes.version
	part := span{ctx: r.bytes.ctx, bucket: r.bytes.bucket, version: v, offset: offset, end: min(offset+int64(len(p)), v.size)}
	defer part.close()
	n := 0
	for n < len(p) {
		m, err := part.Read(p[n:])
		n += m
		if errors.Is(err, io.EOF) {
			return n, io.EOF
		}
		if err != nil {
			return n, pathError("read", r.name, err)
		}
	}
	return n, nil
}

// Seek sets where Read goes on. It makes no request, and where the offset is the present one it changes nothing at all.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	if r.closed {
		return 0, r.refuse("seek")
	}
	switch whence {
	case io.SeekCurrent:
		offset += r.bytes.offset
	case io.SeekEnd:
		offset += r.bytes.end
	}
	if offset < 0 || whence < io.SeekStart || whence > io.SeekEnd {
		return 0, pathError("seek", r.name, errInvalid)
	}
	if offset != r.bytes.offset {
		r.bytes.close()
		r.bytes.offset = offset
	}
	return offset, nil
}

// Stat describes the version of the object that is read.
func (r *reader) Stat() (fs.FileInfo, error) { return r.info, nil }

// Abort ends reading: what reads or will read, and Close, returns cause.
func (r *reader) Abort(cause error) { r.cancel(cause) }

// Close gives the connection back, where all was read, or ends it.
func (r *reader) Close() error {
	if r.closed {
		return r.refuse("close")
	}
	r.closed = true
	err := context.Cause(r.bytes.ctx)
	r.bytes.close()
	r.cancel(nil)
	return pathError("close", r.name, err)
}

// A span reads the bytes [offset, end) of one version of an object, over as many connections as that takes.
type span struct {
	ctx         context.Context
	bucket      *bucket
	version     version
	offset, end int64
	body        io.ReadCloser // nil when the next byte must be asked for
	broken      int           // how often in a row body ended early
}

// Read returns io.EOF at end only.
func (s *span) Read(p []byte) (int, error) {
	for {
		if err := context.Cause(s.ctx); err != nil {
			return 0, err // bytes may have come all the same
		}
		if s.body == nil {
			if s.offset >= s.end {
				return 0, io.EOF
			}
			var err error
			if s.body, err = s.bucket.getRange(s.ctx, s.version, s.offset, s.end); err != nil {
				return 0, s.cause(err)
			}
		}
		n, err := s.body.Read(p)
		s.offset += int64(n)
		if n > 0 {
			s.broken = 0
			return n, nil // an error comes again
		}
		if err == nil {
			return 0, nil
		}
		s.close()
		if s.offset < s.end {
			if err = s.pause(fromS3(err)); err == nil {
				continue
			}
			return 0, err
		}
		if !errors.Is(err, io.EOF) {
			err = s.cause(fromS3(err)) // the checksum of all bytes, which the SDK compares last
		}
		return 0, err
	}
}

// pause waits before the bytes are asked for again, or returns why they shall not be.
func (s *span) pause(err error) error {
	s.broken++
	if s.broken > maxBreaks {
		return s.cause(err)
	}
	var delay time.Duration
	if s.broken > 1 {
		delay = breakDelay << (s.broken - 2)
	}
	if sleep(s.ctx, delay) != nil {
		return s.cause(err)
	}
	return nil
}

// cause prefers the reason why the span was ended to the error that shows it.
func (s *span) cause(err error) error {
	if cause := context.Cause(s.ctx); cause != nil {
		return cause
	}
	return err
}

func (s *span) close() {
	if s.body != nil {
		_ = s.body.Close() // nothing was written, so nothing is lost
		s.body = nil
	}
}

// sleep waits, or returns the reason why ctx ended.
func sleep(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// get opens the present version of an object from an offset on.
func (b *bucket) get(ctx context.Context, key string, offset int64) (version, attributes, io.ReadCloser, error) {
	in := &s3.GetObjectInput{Bucket: &b.name, Key: &key}
	if offset > 0 { // an empty object has no byte 0 to start from
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	out, err := b.client.GetObject(ctx, in)
	if err != nil {
		return version{}, attributes{}, nil, fromS3(err)
	}
	size := out.ContentLength
	if offset > 0 {
		size = rangeSize(out, offset)
	}
	if size == nil {
		_ = out.Body.Close()
		return version{}, attributes{}, nil, fault(syscall.EIO, "GetObject answered with other bytes than asked for")
	}
	v := version{
		key: key, size: *size, modTime: aws.ToTime(out.LastModified), etag: aws.ToString(out.ETag), class: out.StorageClass,
	}
	return v, attributes{contentType: out.ContentType, metadata: out.Metadata}, out.Body, nil
}

// getRange opens the bytes [from, to) of a version.
func (b *bucket) getRange(ctx context.Context, v version, from, to int64) (io.ReadCloser, error) {
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &b.name, Key: &v.key,
		IfMatch: condition{etag: v.etag}.ifMatch(),
		Range:   aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1)),
	})
	if err != nil {
		return nil, fromS3(err)
	}
	if rangeSize(out, from) == nil {
		_ = out.Body.Close()
		return nil, fault(syscall.EIO, "GetObject answered with other bytes than asked for")
	}
	return out.Body, nil
}

// rangeSize returns the size of the whole object from the answer to a request for a range that begins at from, or nil when the
// answer is another range: a proxy may drop the header and send all.
func rangeSize(out *s3.GetObjectOutput, from int64) *int64 {
	var first, last, size int64
	_, err := fmt.Sscanf(aws.ToString(out.ContentRange), "bytes %d-%d/%d", &first, &last, &size)
	if err != nil || first != from {
		return nil
	}
	return &size
}
