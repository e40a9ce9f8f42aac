package clients

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// Slots bound the requests of an operation on a directory: one for each that may be under way at the same time.
type Slots chan struct{}

// A Limited waits for a slot before each request.
type Limited struct {
	s3api.Client
	Slots Slots
}

// withSlot sends a request when there is a slot for it.
func withSlot[In, Out any](
	ctx context.Context, s Slots, in *In, send func(context.Context, *In, ...func(*s3.Options)) (*Out, error), opts []func(*s3.Options),
) (*Out, error) {
	select {
	case s <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s }()
	return send(ctx, in, opts...)
}

// HeadObject implements [Client].
func (c Limited) HeadObject(ctx context.Context, in *s3.HeadObjectInput, opts ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	return withSlot(ctx, c.Slots, in, c.Client.HeadObject, opts)
}

// GetObject implements [Client].
func (c Limited) GetObject(ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	return withSlot(ctx, c.Slots, in, c.Client.GetObject, opts)
}

// PutObject implements [Client].
func (c Limited) PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return withSlot(ctx, c.Slots, in, c.Client.PutObject, opts)
}

// GetObjectTagging implements [Client].
func (c Limited) GetObjectTagging(ctx context.Context, in *s3.GetObjectTaggingInput, opts ...func(*s3.Options)) (*s3.GetObjectTaggingOutput, error) {
	return withSlot(ctx, c.Slots, in, c.Client.GetObjectTagging, opts)
}

// DeleteObject implements [Client].
func (c Limited) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, opts ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	return withSlot(ctx, c.Slots, in, c.Client.DeleteObject, opts)
}

// DeleteObjects implements [Client].
func (c Limited) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput, opts ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error) {
	return withSlot(ctx, c.Slots, in, c.Client.DeleteObjects, opts)
}

// CopyObject implements [Client].
func (c Limited) CopyObject(ctx context.Context, in *s3.CopyObjectInput, opts ...func(*s3.Options)) (*s3.CopyObjectOutput, error) {
	return withSlot(ctx, c.Slots, in, c.Client.CopyObject, opts)
}

// ListObjectVersions implements [Client].
func (c Limited) ListObjectVersions(ctx context.Context, in *s3.ListObjectVersionsInput, opts ...func(*s3.Options)) (*s3.ListObjectVersionsOutput, error) {
	return withSlot(ctx, c.Slots, in, c.Client.ListObjectVersions, opts)
}

// ListObjectsV2 implements [Client].
func (c Limited) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, opts ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	return withSlot(ctx, c.Slots, in, c.Client.ListObjectsV2, opts)
}

// CreateMultipartUpload implements [Client].
func (c Limited) CreateMultipartUpload(ctx context.Context, in *s3.CreateMultipartUploadInput, opts ...func(*s3.Options)) (*s3.CreateMultipartUploadOutput, error) {
	return withSlot(ctx, c.Slots, in, c.Client.CreateMultipartUpload, opts)
}

// UploadPart implements [Client].
func (c Limited) UploadPart(ctx context.Context, in *s3.UploadPartInput, opts ...func(*s3.Options)) (*s3.UploadPartOutput, error) {
	return withSlot(ctx, c.Slots, in, c.Client.UploadPart, opts)
}

// UploadPartCopy implements [Client].
func (c Limited) UploadPartCopy(ctx context.Context, in *s3.UploadPartCopyInput, opts ...func(*s3.Options)) (*s3.UploadPartCopyOutput, error) {
	return withSlot(ctx, c.Slots, in, c.Client.UploadPartCopy, opts)
}

// CompleteMultipartUpload implements [Client].
func (c Limited) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput, opts ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error) {
	return withSlot(ctx, c.Slots, in, c.Client.CompleteMultipartUpload, opts)
}

// AbortMultipartUpload implements [Client].
func (c Limited) AbortMultipartUpload(ctx context.Context, in *s3.AbortMultipartUploadInput, opts ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error) {
	return withSlot(ctx, c.Slots, in, c.Client.AbortMultipartUpload, opts)
}
