package s3api

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/s3errors"

	"github.com/babelftp/babelftp/driver/internal/checksums"
)

// reconcileTimeout bounds the look at an object that may outlive the session.
const reconcileTimeout = 30 * time.Second

// reconcile finds out what has become of a request to change an object that ended with an error. It returns the ETag of the object where a
// look at it shows that it was done, and why it failed otherwise.
//
// S3 may do what it is asked to although its answer gets lost. The SDK then asks again, and S3 refuses what is done already: the
// object is not the one any more that is to be replaced, or the upload no longer there. So no error counts that came after another
// attempt, and none that may pass. Where the look fails too, the error is EAGAIN.
//
// A look cannot find a request that S3 performs later.
func (b *Bucket) reconcile(ctx context.Context, key string, a *attempts, err error, done evidence) (etag string, _ error) {
	failed := s3errors.FromSDK(err)
	if done == nil || errors.Is(failed, context.Canceled) || a.count < 2 && !errors.Is(failed, syscall.EAGAIN) {
		return "", failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileTimeout)
	defer cancel()
	out, err := b.look(ctx, key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out = nil
	case err != nil:
		return "", &s3errors.Error{Kind: syscall.EAGAIN, Cause: failed}
	}
	switch {
	case out != nil && a.predates(out):
		return "", failed
	case !done(ctx, out):
		if errors.Is(failed, syscall.ESTALE) { // an attempt may have done it, and another client has changed the object since
			failed = &s3errors.Error{Kind: syscall.EAGAIN, Cause: failed}
		}
		return "", failed
	case out == nil:
		return "", nil
	}
	return aws.ToString(out.ETag), nil
}

// look asks for what shows the content of an object.
func (b *Bucket) look(ctx context.Context, key string) (*s3.HeadObjectOutput, error) {
	return b.headObject(ctx, &s3.HeadObjectInput{Key: &key, ChecksumMode: types.ChecksumModeEnabled})
}

// predates tells whether an object was there before the attempts. Both times are by the clock of S3, which tells seconds.
func (a *attempts) predates(object *s3.HeadObjectOutput) bool {
	now, ok := awsmiddleware.GetServerTime(object.ResultMetadata)
	return ok && !a.begun.IsZero() && now.Sub(aws.ToTime(object.LastModified)) > time.Since(a.begun)+time.Second
}

// evidence tells whether an object shows that a request was done. It gets nil where there is none. Nil is of what cannot be seen.
type evidence func(ctx context.Context, object *s3.HeadObjectOutput) bool

// evidenceOfDelete is there being no object.
func evidenceOfDelete(_ context.Context, object *s3.HeadObjectOutput) bool { return object == nil }

// evidenceOfPut is an object with the bytes and the user metadata.
func evidenceOfPut(c checksums.Content, metadata map[string]string) evidence {
	return func(_ context.Context, object *s3.HeadObjectOutput) bool {
		return object != nil && maps.Equal(object.Metadata, metadata) && checksums.Match(object, c)
	}
}

// evidenceOfComplete is an object of the size that was put together of these parts. Where its sums are made otherwise the number of parts
// must do, if the first attempt found the upload and it no longer exists.
func evidenceOfComplete(parts []types.CompletedPart, size int64, gone bool) evidence {
	return func(_ context.Context, object *s3.HeadObjectOutput) bool {
		return object != nil && aws.ToInt64(object.ContentLength) == size && checksums.MatchParts(object, parts, gone)
	}
}

// evidenceOfCopy is an object in a bucket with the bytes of a version and the user metadata.
func (v Version) evidenceOfCopy(b *Bucket, to string, metadata map[string]string) evidence {
	return func(ctx context.Context, object *s3.HeadObjectOutput) bool {
		if object == nil || !maps.Equal(object.Metadata, metadata) {
			return false
		}
		is, err := v.isIn(ctx, b, to, object)
		return err == nil && is
	}
}

// evidenceOfRewrite is the object itself, when it has the user metadata.
func (v Version) evidenceOfRewrite(metadata map[string]string) evidence {
	return func(_ context.Context, object *s3.HeadObjectOutput) bool {
		return object != nil && aws.ToInt64(object.ContentLength) == v.Size && maps.Equal(object.Metadata, metadata)
	}
}
