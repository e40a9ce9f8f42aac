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

// reconcile finds out whether S3 performed a request that ended with an error. If a look at the object shows that it did, reconcile returns the
// ETag of the object. Otherwise it returns why the request failed.
//
// S3 may perform a request although its answer is lost. The SDK then repeats the request, and S3 refuses it: the object is no longer the one
// to replace, or the upload no longer exists. So an error after another attempt proves nothing, nor does a temporary error. If the look fails
// too, the error is EAGAIN.
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

// look requests the attributes and checksums of an object.
func (b *Bucket) look(ctx context.Context, key string) (*s3.HeadObjectOutput, error) {
	return b.headObject(ctx, &s3.HeadObjectInput{Key: &key, ChecksumMode: types.ChecksumModeEnabled})
}

// predates tells whether an object is older than the attempts. Both times are by the clock of S3, in whole seconds.
func (a *attempts) predates(object *s3.HeadObjectOutput) bool {
	now, ok := awsmiddleware.GetServerTime(object.ResultMetadata)
	return ok && !a.begun.IsZero() && now.Sub(aws.ToTime(object.LastModified)) > time.Since(a.begun)+time.Second
}

// evidence tells whether an object shows that S3 performed a request. It gets nil if there is no object. A nil evidence says that an object
// cannot show it.
type evidence func(ctx context.Context, object *s3.HeadObjectOutput) bool

// evidenceOfDelete is that there is no object.
func evidenceOfDelete(_ context.Context, object *s3.HeadObjectOutput) bool { return object == nil }

// evidenceOfPut is an object with the bytes and the user metadata.
func evidenceOfPut(c checksums.Content, metadata map[string]string) evidence {
	return func(_ context.Context, object *s3.HeadObjectOutput) bool {
		return object != nil && maps.Equal(object.Metadata, metadata) && checksums.Match(object, c)
	}
}

// evidenceOfComplete is an object of this size with an ETag or a checksum made of these parts. If its checksums are made otherwise, the number
// of parts is enough, provided that the upload existed at the first attempt and no longer exists.
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
		is, err := v.hasBytesOf(ctx, b, to, object)
		return err == nil && is
	}
}

// evidenceOfRewrite is the object itself, when it has the user metadata.
func (v Version) evidenceOfRewrite(metadata map[string]string) evidence {
	return func(_ context.Context, object *s3.HeadObjectOutput) bool {
		return object != nil && aws.ToInt64(object.ContentLength) == v.Size && maps.Equal(object.Metadata, metadata)
	}
}
