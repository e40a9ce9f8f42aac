package s3api

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// Put stores an object with attributes, if the condition holds. crc32c is the base64-encoded checksum of the body, or
// nil if the caller does not know it.
func (b *Bucket) Put(
	ctx context.Context, key string, a *s3object.Attributes, c Condition, body s3object.Content, crc32c *string,
) (Result, error) {
	growStack()
	w := conditionalWrite{
		key: key, name: newName(), condition: c, supported: b.Profile.HasConditionalPut(c.Absent),
		timeout: silenceTimeout,
	}
	w.send = func(ctx context.Context, c Condition) (Result, error) {
		content, err := newSentBody(ctx, body)
		if err != nil {
			return Result{}, err
		}
		in := &s3.PutObjectInput{Bucket: &b.Name, Key: &key, Body: content, IfMatch: c.ifMatch(&b.Profile),
			IfNoneMatch: c.ifNoneMatch()}
		a.ApplyToPut(in)
		in.Metadata = withName(in.Metadata, w.name)
		if !b.Profile.Checksums {
			in.ChecksumAlgorithm = ""
		}
		if in.ChecksumAlgorithm == "" || in.ChecksumAlgorithm == s3object.Algorithm {
			in.ChecksumCRC32C = crc32c
		}
		if in.ChecksumCRC32C == nil && in.ChecksumAlgorithm == "" {
			if in.ChecksumCRC32C, err = s3object.CRC32COf(body); err != nil {
				return Result{}, err
			}
		}
		out, err := call(ctx, b, b.client.PutObject, in, func(o *s3.Options) {
			switch {
			case in.ChecksumCRC32C == nil:
			case b.sendsChecksums(o):
				unsigned(o)
			default:
				in.ChecksumCRC32C = nil
				withMD5(o)
			}
		})
		switch {
		case err != nil:
			return Result{}, err
		case !hasETag(out.ETag):
			return Result{}, b.noETag(out.ResultMetadata)
		case out.ChecksumCRC32C == nil:
			out.ChecksumCRC32C = in.ChecksumCRC32C // S3 has verified it
		}
		made := newResult(*out.ETag, out.ResultMetadata, out.ChecksumCRC32C, out.ChecksumCRC64NVME, out.ChecksumCRC32)
		made.Name = in.Metadata[s3object.WriteKey]
		return made, nil
	}
	made, err := b.perform(ctx, w)
	return made, c.replacedIfGone(err)
}
