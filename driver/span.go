package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// A span reads the bytes [offset, end) of one version of an object, over as many connections as that takes.
type span struct {
	ctx         context.Context
	bucket      *bucket
	version     version
	offset, end int64
	body        io.ReadCloser // nil when the next byte must be asked for
	retries     retries
	arrived     func(n int) // is told how many bytes have come; may be nil
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
				if err = s.retries.pause(s.ctx, err); err != nil {
					return 0, s.cause(err)
				}
				continue
			}
		}
		n, err := s.body.Read(p)
		s.offset += int64(n)
		if n > 0 {
			s.retries.progress(n)
			if s.arrived != nil {
				s.arrived(n)
			}
			return n, nil // an error comes again
		}
		if err == nil {
			return 0, nil
		}
		s.close()
		if s.offset >= s.end {
			if !errors.Is(err, io.EOF) {
				err = s.cause(s3errors.Truncated(err)) // the checksum of all bytes, which the SDK compares last
			}
			return 0, err
		}
		if err = s.retries.pause(s.ctx, s3errors.Truncated(err)); err != nil {
			return 0, s.cause(err)
		}
	}
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

// get opens the present version of an object from an offset on.
func (b *bucket) get(ctx context.Context, key string, offset int64) (version, attributes, io.ReadCloser, error) {
	in := &s3.GetObjectInput{Bucket: &b.name, Key: &key}
	if offset > 0 { // an empty object has no byte 0 to start from
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	out, err := b.object(ctx, in)
	if err != nil {
		return version{}, attributes{}, nil, err
	}
	size := out.ContentLength
	if offset > 0 {
		size = rangeSize(out, offset)
	}
	if size == nil {
		_ = out.Body.Close()
		return version{}, attributes{}, nil, errOtherBytes
	}
	v := version{
		bucket: b, key: key, size: *size, modTime: aws.ToTime(out.LastModified), etag: aws.ToString(out.ETag), class: out.StorageClass,
	}
	return v, attributes{contentType: out.ContentType, metadata: out.Metadata}, out.Body, nil
}

// getRange opens the bytes [from, to) of a version. All of them are no range, so that they come with their checksum.
func (b *bucket) getRange(ctx context.Context, v version, from, to int64) (io.ReadCloser, error) {
	in := &s3.GetObjectInput{Bucket: &b.name, Key: &v.key, IfMatch: condition{etag: v.etag}.ifMatch()}
	whole := from == 0 && to == v.size
	if !whole {
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1))
	}
	out, err := b.object(ctx, in)
	if err != nil {
		return nil, err
	}
	if whole && aws.ToInt64(out.ContentLength) != v.size || !whole && rangeSize(out, from) == nil {
		_ = out.Body.Close()
		return nil, errOtherBytes
	}
	return out.Body, nil
}

// object asks for an object. The request ends with an EAGAIN when S3 sends nothing for a while.
func (b *bucket) object(ctx context.Context, in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	growStack()
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(b.patience, func() { cancel(errSilent) })
	begin := time.Now()
	out, err := b.client.GetObject(ctx, in)
	watch.Stop()
	if err != nil {
		err = silent(ctx, err)
		cancel(nil)
		return nil, s3errors.FromSDK(err)
	}
	if out.ETag == nil {
		_ = out.Body.Close()
		cancel(nil)
		return nil, errNoETag
	}
	b.route.stats.Observe(time.Now(), time.Since(begin))
	out.Body = &watchedBody{ReadCloser: out.Body, ctx: ctx, cancel: cancel, watch: watch, patience: b.patience}
	return out, nil
}

// A watchedBody ends when S3 sends nothing of it for a while. The time in which nobody reads does not count.
type watchedBody struct {
	io.ReadCloser
	ctx      context.Context
	cancel   context.CancelCauseFunc
	watch    *time.Timer // calls cancel
	patience time.Duration
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.Reset(b.patience)
	n, err := b.ReadCloser.Read(p)
	b.watch.Stop()
	if err != nil {
		err = silent(b.ctx, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *watchedBody) Close() error {
	b.cancel(nil)
	return b.ReadCloser.Close()
}

// errSilent is the end of a request to which S3 sends nothing.
var errSilent = fmt.Errorf("S3 has sent nothing for too long: %w", context.DeadlineExceeded)

// silent prefers errSilent, if that is why a request ended, to the error that shows it.
func silent(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// errOtherBytes is an answer that must not be taken for the one which was asked for.
var errOtherBytes = s3errors.New(syscall.EIO, "GetObject answered with other bytes than asked for")

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
