package clients

import (
	"context"
	"crypto/md5"
	"encoding/base64"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// A customerKeys sends a key with every request for the bytes or the attributes of an object (SSE-C):
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/ServerSideEncryptionCustomerKeys.html
type customerKeys struct {
	s3api.Client
	algorithm, key, sum *string
}

// WithCustomerKey returns a client whose objects S3 encrypts with a key of 32 bytes that it then forgets (SSE-C). It must be the key of all
// objects that the client meets. Links to them do not work, because they cannot hold the key.
func WithCustomerKey(client s3api.Client, key []byte) s3api.Client {
	sum := md5.Sum(key)
	return &customerKeys{
		Client: client, algorithm: aws.String("AES256"),
		key: aws.String(base64.StdEncoding.EncodeToString(key)), sum: aws.String(base64.StdEncoding.EncodeToString(sum[:])),
	}
}

func (c *customerKeys) HeadObject(ctx context.Context, in *s3.HeadObjectInput, opts ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = c.algorithm, c.key, c.sum
	return c.Client.HeadObject(ctx, in, opts...)
}

func (c *customerKeys) GetObject(ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = c.algorithm, c.key, c.sum
	return c.Client.GetObject(ctx, in, opts...)
}

func (c *customerKeys) PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = c.algorithm, c.key, c.sum
	return c.Client.PutObject(ctx, in, opts...)
}

func (c *customerKeys) CopyObject(ctx context.Context, in *s3.CopyObjectInput, opts ...func(*s3.Options)) (*s3.CopyObjectOutput, error) {
	in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = c.algorithm, c.key, c.sum
	in.CopySourceSSECustomerAlgorithm, in.CopySourceSSECustomerKey, in.CopySourceSSECustomerKeyMD5 = c.algorithm, c.key, c.sum
	return c.Client.CopyObject(ctx, in, opts...)
}

func (c *customerKeys) CreateMultipartUpload(ctx context.Context, in *s3.CreateMultipartUploadInput, opts ...func(*s3.Options)) (*s3.CreateMultipartUploadOutput, error) {
	in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = c.algorithm, c.key, c.sum
	return c.Client.CreateMultipartUpload(ctx, in, opts...)
}

func (c *customerKeys) UploadPart(ctx context.Context, in *s3.UploadPartInput, opts ...func(*s3.Options)) (*s3.UploadPartOutput, error) {
	in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = c.algorithm, c.key, c.sum
	return c.Client.UploadPart(ctx, in, opts...)
}

func (c *customerKeys) ListParts(ctx context.Context, in *s3.ListPartsInput, opts ...func(*s3.Options)) (*s3.ListPartsOutput, error) {
	in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = c.algorithm, c.key, c.sum
	return c.Client.ListParts(ctx, in, opts...)
}

func (c *customerKeys) UploadPartCopy(ctx context.Context, in *s3.UploadPartCopyInput, opts ...func(*s3.Options)) (*s3.UploadPartCopyOutput, error) {
	in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = c.algorithm, c.key, c.sum
	in.CopySourceSSECustomerAlgorithm, in.CopySourceSSECustomerKey, in.CopySourceSSECustomerKeyMD5 = c.algorithm, c.key, c.sum
	return c.Client.UploadPartCopy(ctx, in, opts...)
}

func (c *customerKeys) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput, opts ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error) {
	in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = c.algorithm, c.key, c.sum
	return c.Client.CompleteMultipartUpload(ctx, in, opts...)
}
