package file

import (
	"context"
	"errors"
	"io"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// A Range reads a range of bytes of one version of an object. If the connection breaks, it requests the rest again.
type Range struct {
	ctx         context.Context
	bucket      *s3api.Bucket
	version     s3api.Version
	offset, end int64
	body        io.ReadCloser // nil if the next byte must be requested
	// responses counts the responses that delivered bytes, including earlier ones of the Reader.
	responses int
	retries   retries
}

// NewRange returns a reader for the bytes [from, to). It sends no request yet. The caller must call Close.
func NewRange(ctx context.Context, bucket *s3api.Bucket, v s3api.Version, from, to int64) *Range {
	return &Range{ctx: ctx, bucket: bucket, version: v, offset: from, end: to}
}

// Read implements io.Reader. It returns io.EOF only at the end of the range.
func (r *Range) Read(p []byte) (int, error) {
	for {
		if err := context.Cause(r.ctx); err != nil {
			return 0, err // even if bytes have arrived
		}
		if r.body == nil {
			if r.offset >= r.end {
				return 0, r.confirm()
			}
			var err error
			if r.body, err = r.bucket.GetRange(r.ctx, r.version, r.offset, r.end); err != nil {
				if err = r.retries.pause(r.ctx, err); err != nil {
					return 0, r.cause(err)
				}
				continue
			}
			r.responses++
		}
		n, err := r.body.Read(p)
		r.offset += int64(n)
		if n > 0 {
			r.retries.progress(n)
			return n, nil // a later Read returns the error again
		}
		if err == nil {
			return 0, nil
		}
		r.Close()
		if r.offset >= r.end {
			if errors.Is(err, io.EOF) {
				err = r.confirm()
			} else {
				err = r.cause(s3error.Truncated(err)) // the SDK found a wrong checksum at the end
			}
			return 0, err
		}
		if err = r.retries.pause(r.ctx, s3error.Truncated(err)); err != nil {
			return 0, r.cause(err)
		}
	}
}

// confirm returns io.EOF if the bytes of several responses belong to one version. If reads are not atomic (see the
// profile), the server may have compared the ETag of this version and then opened the next version. If the object still
// has the same ETag, it was this version all the time.
func (r *Range) confirm() error {
	r.retries = retries{}
	for r.responses > 1 && !r.bucket.Profile.AtomicReads {
		err := r.bucket.CheckCondition(r.ctx, r.version.Key, s3api.Condition{ETag: r.version.ETag})
		if err == nil {
			break
		}
		if err = r.retries.pause(r.ctx, err); err != nil {
			return r.cause(err)
		}
	}
	r.responses = 0
	return io.EOF
}

// cause returns the reason why the context ended, if it has, instead of an error that results from it.
func (r *Range) cause(err error) error {
	if cause := context.Cause(r.ctx); cause != nil {
		return cause
	}
	return err
}

// Close ends the current request. A later Read sends a new one.
func (r *Range) Close() {
	if r.body != nil {
		_ = r.body.Close() // nothing was written, so nothing is lost
		r.body = nil
	}
}
