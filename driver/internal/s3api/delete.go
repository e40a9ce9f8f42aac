package s3api

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// errReplaced reports that the key has another object than the expected version.
var errReplaced = s3error.New(syscall.ESTALE, "another client replaced the object")

// DeleteVersion checks that an object is still this version and deletes it with [Bucket.DeleteCurrent].
func (b *Bucket) DeleteVersion(ctx context.Context, v Version) error {
	now, err := b.current(ctx, v)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.DeleteCurrent(ctx, now)
}

// DeleteCurrent deletes a version that S3 has just described. If the key has another object now, that object stays and
// the error is ESTALE. A missing object is not an error.
//
// The request has the condition If-Match if the server supports it, so only an object with the same ETag can be deleted
// instead. Without the condition, the delete also removes an object that another client has stored since the caller's
// check. In a bucket with versioning, that object remains among the older versions.
//
// DeleteCurrent checks the object again before it repeats a request. After a request without a response, it repeats the
// request only if the object still exists and its name or version ID proves that it is this version. Otherwise an equal
// object may have been stored after the delete, and the error is EAGAIN.
//
// It never deletes by version ID, because that would remove the version from the history of the bucket and make the
// previous version current.
func (b *Bucket) DeleteCurrent(ctx context.Context, v Version) error {
	in := &s3.DeleteObjectInput{Bucket: &b.Name, Key: &v.Key}
	if b.Profile.ConditionalDelete {
		in.IfMatch = Condition{ETag: v.ETag}.ifMatch(&b.Profile)
	}
	uncertain := false // S3 may have performed an earlier attempt
	for t := newTries(ctx, false); ; {
		_, err := attempt(ctx, t, headTimeout, func(ctx context.Context) (*s3.DeleteObjectOutput, error) {
			return b.deleteObject(ctx, in)
		})
		failed := s3error.FromSDK(err)
		switch {
		case err == nil, errors.Is(failed, fs.ErrNotExist):
			return nil
		case errors.Is(failed, context.Canceled):
			return failed
		}
		uncertain = uncertain || !s3error.NotPerformed(err)
		more := t.again(ctx, err)
		if !uncertain && !more {
			return failed
		}
		_, err = b.current(ctx, v)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case uncertain && (err != nil || !more || !v.identified()):
			return unknown(failed)
		case err != nil:
			return err
		}
	}
}

// current returns a version as S3 describes it now. The error is ESTALE if the key has another object.
func (b *Bucket) current(ctx context.Context, v Version) (Version, error) {
	now, _, err := b.Head(ctx, v.Key)
	if err == nil && !v.IsStill(now) {
		err = errReplaced
	}
	return now, err
}

// isLockedMarker reports whether Object Lock keeps the server from deleting the marker of a directory with
// DeleteObject.
func (b *Bucket) isLockedMarker(key string, err error) bool {
	return b.Profile.LockedMarkers && strings.HasSuffix(key, "/") && s3error.HasCode(err, "InvalidRequest") &&
		s3object.IsXMLText(key)
}

// deleteObject makes one attempt to delete an object. It deletes a locked marker with DeleteObjects, without a
// condition.
func (b *Bucket) deleteObject(ctx context.Context, in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	out, err := call(ctx, b, b.client.DeleteObject, in)
	if !b.isLockedMarker(*in.Key, err) {
		return out, err
	}
	locked, err := call(ctx, b, b.client.DeleteObjects, &s3.DeleteObjectsInput{
		Bucket: &b.Name, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: in.Key}}},
	}, withMD5)
	switch {
	case err != nil:
		return nil, err
	case len(locked.Errors) > 0:
		refused := locked.Errors[0]
		return nil, &smithy.GenericAPIError{Code: aws.ToString(refused.Code), Message: aws.ToString(refused.Message)}
	case len(locked.Deleted) == 0:
		return nil, s3error.ErrNoResult
	}
	return &s3.DeleteObjectOutput{}, nil
}

// Delete deletes the object at a key that only this process writes. A missing object is not an error.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	_, err := repeat(ctx, headTimeout, false, func(ctx context.Context) (*s3.DeleteObjectOutput, error) {
		return call(ctx, b, b.client.DeleteObject, &s3.DeleteObjectInput{Bucket: &b.Name, Key: &key})
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
