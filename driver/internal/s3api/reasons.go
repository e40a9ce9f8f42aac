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

// WithReasons returns a client that finds out why HeadObject was refused. The response has no body, so 403 is all that
// S3 says of a file that may not be read, of credentials that have expired, and of a wrong clock. 400 is all that it
// says of a key that it cannot store. The response to GetObject for one byte distinguishes these cases. The error is
// that of GetObject if it is an EAGAIN or comes from a proxy, or if the status of HeadObject was 400.
//
// If S3 does not refuse GetObject, HeadObject is sent once more: the SDK has set its clock by the first response.
//
// versitygw responds with 404 for an account that it does not know. A missing file is too frequent to ask about each.
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
