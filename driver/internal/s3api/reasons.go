package s3api

import (
	"context"
	"errors"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// WithReasons returns a client that finds out why HeadObject was refused. The answer has no body, so 403 is all that
// S3 says of a file that may not be read, and of credentials that have expired. 400 is also all that it says of a key
// that it cannot store. The answer to GetObject for one byte tells these apart. The error is that of GetObject where
// it is an EAGAIN or comes from a proxy, or where HeadObject got 400.
//
// versitygw answers 404 for an account that it does not know. A missing file is too frequent to ask about each.
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
		return nil, err
	}
	_, foreign := errors.AsType[*s3error.ForeignError](reason)
	if foreign || s3error.IsBadRequest(err) || errors.Is(s3error.FromSDK(reason), syscall.EAGAIN) {
		err = reason
	}
	return nil, err
}
