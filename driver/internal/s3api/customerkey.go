package s3api

import (
	"context"
	"crypto/md5"
	"encoding/base64"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
)

// CustomerKey returns an option for APIOptions of S3 clients. It adds a key of 32 bytes to every request for the data
// or the attributes of an object (SSE-C). S3 encrypts the objects with this key and does not keep it, so all objects
// that the client reads must have been stored with the same key. Presigned links do not work, because they cannot
// contain the key. See https://docs.aws.amazon.com/AmazonS3/latest/userguide/ServerSideEncryptionCustomerKeys.html
func CustomerKey(customerKey []byte) func(*middleware.Stack) error {
	hash := md5.Sum(customerKey)
	algorithm, key := aws.String("AES256"), aws.String(base64.StdEncoding.EncodeToString(customerKey))
	sum := aws.String(base64.StdEncoding.EncodeToString(hash[:]))
	setKey := middleware.InitializeMiddlewareFunc("CustomerKey", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		switch in := in.Parameters.(type) {
		case *s3.HeadObjectInput:
			in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = algorithm, key, sum
		case *s3.GetObjectInput:
			in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = algorithm, key, sum
		case *s3.PutObjectInput:
			in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = algorithm, key, sum
		case *s3.CopyObjectInput:
			in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = algorithm, key, sum
			in.CopySourceSSECustomerAlgorithm, in.CopySourceSSECustomerKey, in.CopySourceSSECustomerKeyMD5 = algorithm,
				key, sum
		case *s3.CreateMultipartUploadInput:
			in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = algorithm, key, sum
		case *s3.UploadPartInput:
			in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = algorithm, key, sum
		case *s3.ListPartsInput:
			in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = algorithm, key, sum
		case *s3.UploadPartCopyInput:
			in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = algorithm, key, sum
			in.CopySourceSSECustomerAlgorithm, in.CopySourceSSECustomerKey, in.CopySourceSSECustomerKeyMD5 = algorithm,
				key, sum
		case *s3.CompleteMultipartUploadInput:
			in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = algorithm, key, sum
		}
		return next.HandleInitialize(ctx, in)
	})
	return func(stack *middleware.Stack) error { return stack.Initialize.Add(setKey, middleware.Before) }
}
