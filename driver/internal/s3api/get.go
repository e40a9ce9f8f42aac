package s3api

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// Get opens the current version of an object, from an offset to its end.
func (b *Bucket) Get(ctx context.Context, key string, offset int64) (Version, s3object.Attributes, *Body, error) {
	in := &s3.GetObjectInput{Bucket: &b.Name, Key: &key}
	if offset > 0 { // without an offset, send no Range: an empty object has no byte 0
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	out, err := b.getObject(ctx, in)
	if err != nil {
		return Version{}, s3object.Attributes{}, nil, err
	}
	size, err := b.checkBytes(ctx, in, out, offset)
	if err != nil {
		_ = out.Body.Close()
		return Version{}, s3object.Attributes{}, nil, err
	}
	v := Version{
		Bucket: b, Key: key, Size: *size, ModTime: aws.ToTime(out.LastModified),
		ETag:         validator(out.ETag, size, out.LastModified),
		StorageClass: out.StorageClass,
	}
	return v, s3object.Attributes{ContentType: out.ContentType, Metadata: out.Metadata}, out.Body.(*Body), nil
}

// GetRange opens the bytes [from, to) of a version. It sends no Range for the whole object, because then the response
// has a checksum.
func (b *Bucket) GetRange(ctx context.Context, v Version, from, to int64) (io.ReadCloser, error) {
	in := &s3.GetObjectInput{
		Bucket: &b.Name, Key: &v.Key, IfMatch: Condition{ETag: v.ETag}.ifMatch(&b.Profile),
	}
	if isWeak(v.ETag) {
		in.IfUnmodifiedSince = v.unmodifiedSince()
	}
	whole := from == 0 && to == v.Size
	if !whole {
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1))
	}
	out, err := b.getObject(ctx, in)
	if err != nil {
		return nil, err
	}
	size, err := b.checkBytes(ctx, in, out, from)
	switch {
	case err != nil:
	case isWeak(v.ETag) && validator(out.ETag, size, out.LastModified) != v.ETag:
		err = errReplaced
	case whole && *size != v.Size:
		err = errOtherBytes
	default:
		return out.Body, nil
	}
	_ = out.Body.Close()
	return nil, err
}

// checkBytes checks that a response has the requested bytes, and returns the size of the whole object. It returns an
// error if the response has another range, or if a proxy has compressed it.
//
// A proxy that compresses or chunks a response removes its Content-Length, and objects can be stored with a
// Content-Encoding of their own. In these cases checkBytes compares the response with HeadObject.
func (b *Bucket) checkBytes(
	ctx context.Context, in *s3.GetObjectInput, out *s3.GetObjectOutput, from int64,
) (*int64, error) {
	size := out.ContentLength
	if in.Range != nil {
		size = rangeSize(out, from)
	}
	unknown := size == nil && in.Range == nil
	encoding := aws.ToString(out.ContentEncoding)
	if !unknown && encoding == "" {
		if size == nil {
			return nil, errOtherBytes
		}
		return size, nil
	}
	head, err := b.headObject(ctx, &s3.HeadObjectInput{Key: in.Key, VersionId: in.VersionId})
	switch {
	case err != nil:
		return nil, err
	case !sameETag(aws.ToString(head.ETag), aws.ToString(out.ETag)):
		return nil, errReplaced
	case aws.ToString(head.ContentEncoding) != encoding:
		return nil, s3error.New(
			syscall.EIO,
			"a proxy changed the encoding of the object to "+encoding+"; configure it to leave objects as they are")
	case unknown:
		return head.ContentLength, nil
	case size == nil || *size != aws.ToInt64(head.ContentLength):
		return nil, errOtherBytes
	}
	return size, nil
}

// getObject sends GetObject. The error is EAGAIN if S3 sends nothing for the idle timeout.
func (b *Bucket) getObject(ctx context.Context, in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	out, err := b.sendGetObject(ctx, in)
	if err == nil && !hasETag(out.ETag) { // deleted at the same time, or an object without an ETag
		_ = out.Body.Close()
		out, err = b.sendGetObject(ctx, in)
	}
	return out, err
}

func (b *Bucket) sendGetObject(ctx context.Context, in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	growStack()
	return repeat(ctx, unlimited, false, func(ctx context.Context) (*s3.GetObjectOutput, error) {
		ctx, watch := watchIdle(ctx, b.idleTimeout)
		begin := time.Now()
		out, err := call(ctx, b, b.client.GetObject, in)
		watch.Stop()
		if err != nil {
			err = watch.Error(err)
			watch.Close()
			return nil, err
		}
		if !describesObject(out.ETag, out.LastModified, out.ResultMetadata) {
			_ = out.Body.Close()
			watch.Close()
			return nil, errNoObject
		}
		b.stats.Observe(time.Now(), time.Since(begin))
		result := newResult(
			aws.ToString(out.ETag), out.ResultMetadata, out.ChecksumCRC32C, out.ChecksumCRC64NVME, out.ChecksumCRC32,
			out.ChecksumSHA256)
		out.Body = &Body{ReadCloser: out.Body, Result: result, watch: watch}
		return out, nil
	})
}

// A Body reads the body of a response. It fails if S3 sends nothing for the idle timeout. The time between two calls of
// Read does not count.
type Body struct {
	io.ReadCloser
	Result Result
	watch  *idleWatch
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	b.watch.Start()
	n, err := b.ReadCloser.Read(p)
	b.watch.Stop()
	if err != nil {
		err = b.watch.Error(err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *Body) Close() error {
	b.watch.Close()
	return b.ReadCloser.Close()
}

// errOtherBytes reports that a response has another range than the request.
var errOtherBytes = s3error.New(syscall.EIO, "the GetObject response has a different range than requested")

// rangeSize returns the size of the whole object, from the response to a request for a range that begins at from. It
// returns nil if the response has another range. A proxy, for example, may drop the Range header and return the whole
// object.
func rangeSize(out *s3.GetObjectOutput, from int64) *int64 {
	var first, last, size int64
	_, err := fmt.Sscanf(aws.ToString(out.ContentRange), "bytes %d-%d/%d", &first, &last, &size)
	if err != nil || first != from {
		return nil
	}
	return &size
}
