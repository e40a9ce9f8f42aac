package driver

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// slots bound the requests of an operation on a directory: one for each that may be under way at a time.
type slots chan struct{}

// limited is the file system by whose requests an operation stays within its slots. All parts that it copies share as many lanes, so that
// no queue of them keeps other requests waiting.
func (f *Fs) limited(requests slots) *Fs {
	g, b := *f, *f.bucket
	b.client = limitedClient{b.client, requests}
	g.bucket, g.lanes = &b, make(lanes, cap(requests))
	return &g
}

// A limitedClient waits for a slot before each request.
type limitedClient struct {
	Client
	slots slots
}

// within sends a request when there is a slot for it.
func within[In, Out any](
	ctx context.Context, s slots, in *In, send func(context.Context, *In, ...func(*s3.Options)) (*Out, error), opts []func(*s3.Options),
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
func (c limitedClient) HeadObject(ctx context.Context, in *s3.HeadObjectInput, opts ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	return within(ctx, c.slots, in, c.Client.HeadObject, opts)
}

// GetObject implements [Client].
func (c limitedClient) GetObject(ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	return within(ctx, c.slots, in, c.Client.GetObject, opts)
}

// PutObject implements [Client].
func (c limitedClient) PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return within(ctx, c.slots, in, c.Client.PutObject, opts)
}

// GetObjectTagging implements [Client].
func (c limitedClient) GetObjectTagging(ctx context.Context, in *s3.GetObjectTaggingInput, opts ...func(*s3.Options)) (*s3.GetObjectTaggingOutput, error) {
	return within(ctx, c.slots, in, c.Client.GetObjectTagging, opts)
}

// DeleteObject implements [Client].
func (c limitedClient) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, opts ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	return within(ctx, c.slots, in, c.Client.DeleteObject, opts)
}

// DeleteObjects implements [Client].
func (c limitedClient) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput, opts ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error) {
	return within(ctx, c.slots, in, c.Client.DeleteObjects, opts)
}

// CopyObject implements [Client].
func (c limitedClient) CopyObject(ctx context.Context, in *s3.CopyObjectInput, opts ...func(*s3.Options)) (*s3.CopyObjectOutput, error) {
	return within(ctx, c.slots, in, c.Client.CopyObject, opts)
}

// ListObjectVersions implements [Client].
func (c limitedClient) ListObjectVersions(ctx context.Context, in *s3.ListObjectVersionsInput, opts ...func(*s3.Options)) (*s3.ListObjectVersionsOutput, error) {
	return within(ctx, c.slots, in, c.Client.ListObjectVersions, opts)
}

// ListObjectsV2 implements [Client].
func (c limitedClient) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, opts ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	return within(ctx, c.slots, in, c.Client.ListObjectsV2, opts)
}

// CreateMultipartUpload implements [Client].
func (c limitedClient) CreateMultipartUpload(ctx context.Context, in *s3.CreateMultipartUploadInput, opts ...func(*s3.Options)) (*s3.CreateMultipartUploadOutput, error) {
	return within(ctx, c.slots, in, c.Client.CreateMultipartUpload, opts)
}

// UploadPart implements [Client].
func (c limitedClient) UploadPart(ctx context.Context, in *s3.UploadPartInput, opts ...func(*s3.Options)) (*s3.UploadPartOutput, error) {
	return within(ctx, c.slots, in, c.Client.UploadPart, opts)
}

// UploadPartCopy implements [Client].
func (c limitedClient) UploadPartCopy(ctx context.Context, in *s3.UploadPartCopyInput, opts ...func(*s3.Options)) (*s3.UploadPartCopyOutput, error) {
	return within(ctx, c.slots, in, c.Client.UploadPartCopy, opts)
}

// CompleteMultipartUpload implements [Client].
func (c limitedClient) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput, opts ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error) {
	return within(ctx, c.slots, in, c.Client.CompleteMultipartUpload, opts)
}

// AbortMultipartUpload implements [Client].
func (c limitedClient) AbortMultipartUpload(ctx context.Context, in *s3.AbortMultipartUploadInput, opts ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error) {
	return within(ctx, c.slots, in, c.Client.AbortMultipartUpload, opts)
}
