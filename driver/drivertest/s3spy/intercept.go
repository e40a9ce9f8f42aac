// Package s3spy lets tests see and change the requests of an S3 client.
package s3spy

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// An Interceptor is called instead of a request, and calls send to make it. in is the input of the request, such as
// *s3.PutObjectInput, and out its output. It returns the error of the request.
type Interceptor func(ctx context.Context, in any, send func() (out any, err error)) error

// Intercept returns a client that calls an interceptor instead of each request to another client.
func Intercept(client s3api.Client, interceptor Interceptor) s3api.Client {
	return &intercepted{client: client, interceptor: interceptor}
}

type intercepted struct {
	client      s3api.Client
	interceptor Interceptor
}

func intercept[In, Out any](
	ctx context.Context, c *intercepted, in *In,
	request func(context.Context, *In, ...func(*s3.Options)) (*Out, error), opts []func(*s3.Options),
) (out *Out, err error) {
	err = c.interceptor(ctx, in, func() (any, error) {
		var err error
		out, err = request(ctx, in, opts...)
		return out, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c *intercepted) HeadObject(
	ctx context.Context, in *s3.HeadObjectInput, opts ...func(*s3.Options),
) (*s3.HeadObjectOutput, error) {
	return intercept(ctx, c, in, c.client.HeadObject, opts)
}

func (c *intercepted) GetObject(
	ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options),
) (*s3.GetObjectOutput, error) {
	return intercept(ctx, c, in, c.client.GetObject, opts)
}

func (c *intercepted) PutObject(
	ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options),
) (*s3.PutObjectOutput, error) {
	return intercept(ctx, c, in, c.client.PutObject, opts)
}

func (c *intercepted) GetObjectTagging(
	ctx context.Context, in *s3.GetObjectTaggingInput, opts ...func(*s3.Options),
) (*s3.GetObjectTaggingOutput, error) {
	return intercept(ctx, c, in, c.client.GetObjectTagging, opts)
}

func (c *intercepted) PutObjectTagging(
	ctx context.Context, in *s3.PutObjectTaggingInput, opts ...func(*s3.Options),
) (*s3.PutObjectTaggingOutput, error) {
	return intercept(ctx, c, in, c.client.PutObjectTagging, opts)
}

func (c *intercepted) DeleteObject(
	ctx context.Context, in *s3.DeleteObjectInput, opts ...func(*s3.Options),
) (*s3.DeleteObjectOutput, error) {
	return intercept(ctx, c, in, c.client.DeleteObject, opts)
}

func (c *intercepted) DeleteObjects(
	ctx context.Context, in *s3.DeleteObjectsInput, opts ...func(*s3.Options),
) (*s3.DeleteObjectsOutput, error) {
	return intercept(ctx, c, in, c.client.DeleteObjects, opts)
}

func (c *intercepted) CopyObject(
	ctx context.Context, in *s3.CopyObjectInput, opts ...func(*s3.Options),
) (*s3.CopyObjectOutput, error) {
	return intercept(ctx, c, in, c.client.CopyObject, opts)
}

func (c *intercepted) RestoreObject(
	ctx context.Context, in *s3.RestoreObjectInput, opts ...func(*s3.Options),
) (*s3.RestoreObjectOutput, error) {
	return intercept(ctx, c, in, c.client.RestoreObject, opts)
}

func (c *intercepted) ListObjectVersions(
	ctx context.Context, in *s3.ListObjectVersionsInput, opts ...func(*s3.Options),
) (*s3.ListObjectVersionsOutput, error) {
	return intercept(ctx, c, in, c.client.ListObjectVersions, opts)
}

func (c *intercepted) ListObjectsV2(
	ctx context.Context, in *s3.ListObjectsV2Input, opts ...func(*s3.Options),
) (*s3.ListObjectsV2Output, error) {
	return intercept(ctx, c, in, c.client.ListObjectsV2, opts)
}

func (c *intercepted) CreateMultipartUpload(
	ctx context.Context, in *s3.CreateMultipartUploadInput, opts ...func(*s3.Options),
) (*s3.CreateMultipartUploadOutput, error) {
	return intercept(ctx, c, in, c.client.CreateMultipartUpload, opts)
}

func (c *intercepted) UploadPart(
	ctx context.Context, in *s3.UploadPartInput, opts ...func(*s3.Options),
) (*s3.UploadPartOutput, error) {
	return intercept(ctx, c, in, c.client.UploadPart, opts)
}

func (c *intercepted) ListParts(
	ctx context.Context, in *s3.ListPartsInput, opts ...func(*s3.Options),
) (*s3.ListPartsOutput, error) {
	return intercept(ctx, c, in, c.client.ListParts, opts)
}

func (c *intercepted) UploadPartCopy(
	ctx context.Context, in *s3.UploadPartCopyInput, opts ...func(*s3.Options),
) (*s3.UploadPartCopyOutput, error) {
	return intercept(ctx, c, in, c.client.UploadPartCopy, opts)
}

func (c *intercepted) CompleteMultipartUpload(
	ctx context.Context, in *s3.CompleteMultipartUploadInput, opts ...func(*s3.Options),
) (*s3.CompleteMultipartUploadOutput, error) {
	return intercept(ctx, c, in, c.client.CompleteMultipartUpload, opts)
}

func (c *intercepted) AbortMultipartUpload(
	ctx context.Context, in *s3.AbortMultipartUploadInput, opts ...func(*s3.Options),
) (*s3.AbortMultipartUploadOutput, error) {
	return intercept(ctx, c, in, c.client.AbortMultipartUpload, opts)
}
