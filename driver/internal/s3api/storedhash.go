package s3api

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/checksums"
)

// StoredHash returns the size of an object, and its hash if S3 has one.
func (b *Bucket) StoredHash(ctx context.Context, key, algorithm string) (sum []byte, size int64, err error) {
	out, err := b.look(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	if algorithm == "MD5" && b.Profile.MD5ETags && attributes.FromHead(out).Encryption.KeepsMD5() {
		sum = checksums.MD5OfETag(aws.ToString(out.ETag))
	}
	if sum == nil {
		sum = checksums.OfObject(out, algorithm)
	}
	return sum, aws.ToInt64(out.ContentLength), nil
}
