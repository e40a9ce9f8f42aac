package s3api

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/checksums"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// Put stores an object with attributes, on a condition. crc32c is the checksum of the body in base64, nil where the
// caller does not know it.
func (b *Bucket) Put(ctx context.Context, key string, a *attributes.Attributes, c Condition, body checksums.Content, crc32c *string) (made Stored, err error) {
	growStack()
	if c, err = b.precondition(ctx, key, c, b.Profile.ConditionalPut); err != nil {
		return Stored{}, err
	}
	in := &s3.PutObjectInput{Bucket: &b.Name, Key: &key, Body: body, IfMatch: c.ifMatch(), IfNoneMatch: c.ifNoneMatch()}
	a.ApplyToPut(in)
	if in.ChecksumAlgorithm == "" || in.ChecksumAlgorithm == checksums.Algorithm {
		in.ChecksumCRC32C = crc32c
	}
	tries := attempts{begun: time.Now()}
	if in.ChecksumCRC32C == nil && in.ChecksumAlgorithm == "" {
		if in.ChecksumCRC32C, err = checksums.CRC32COf(body); err != nil {
			return Stored{}, err
		}
	}
	out, err := b.client.PutObject(ctx, in, tries.countAttempts, func(o *s3.Options) {
		switch {
		case in.ChecksumCRC32C == nil:
		case b.sendsChecksums(o):
			unsigned(o)
		default:
			in.ChecksumCRC32C = nil
			withoutChecksum(o)
		}
	})
	switch {
	case err != nil:
	case out.ETag == nil:
		err = s3errors.ErrNoResult
	default:
		if out.ChecksumCRC32C == nil {
			out.ChecksumCRC32C = in.ChecksumCRC32C // which S3 has compared
		}
		return stored(*out.ETag, out.ResultMetadata, out.ChecksumCRC32C, out.ChecksumCRC64NVME, out.ChecksumCRC32), nil
	}
	made.ETag, err = b.reconcile(ctx, key, &tries, err, evidenceOfPut(body, in.Metadata))
	return made, err
}
