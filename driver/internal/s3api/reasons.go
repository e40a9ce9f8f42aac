package s3api

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// WithReasons returns a client that finds out why HeadObject was refused. The response to HeadObject has no body, so a
// file that the user may not read, expired credentials and a wrong clock all look the same: 403. A key that S3 cannot
// store is only a 400. The response to GetObject for one byte distinguishes these cases. WithReasons returns the error
// from GetObject if that error is EAGAIN or comes from a proxy, or if the status of HeadObject was 400.
//
// If GetObject succeeds, HeadObject is sent again, because the SDK has corrected its clock with the first response.
//
// versitygw responds with 404 for an unknown account. WithReasons does not check that, because missing files are too
// common for a second request.
func WithReasons(client Client) Client { return reasoned{client} }

type reasoned struct{ Client }

func (c reasoned) HeadObject(
	ctx context.Context, in *s3.HeadObjectInput, opts ...func(*s3.Options),
) (*s3.HeadObjectOutput, error) {
	out, err := c.Client.HeadObject(ctx, in, opts...)
	if !s3error.HasNoReason(err) {
		return out, err
	}
	object, reason := c.GetObject(
		ctx, &s3.GetObjectInput{
			Bucket: in.Bucket, Key: in.Key, VersionId: in.VersionId, Range: aws.String("bytes=0-0"),
		})
	if reason == nil {
		_ = object.Body.Close()
	}
	if reason == nil || errors.Is(s3error.FromSDK(reason), fs.ErrNotExist) {
		return c.Client.HeadObject(ctx, in, opts...)
	}
	_, foreign := errors.AsType[*s3error.ForeignError](reason)
	if foreign || s3error.IsBadRequest(err) || errors.Is(s3error.FromSDK(reason), syscall.EAGAIN) {
		err = reason
	}
	return nil, err
}
