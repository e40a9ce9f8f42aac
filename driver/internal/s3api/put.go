package s3api

import (
	"context"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// Sums are base64-encoded checksums of a body, as far as the caller knows them.
type Sums struct {
	CRC32C *string
	// SHA256 has to be confirmed by S3 for the whole object, unless another algorithm is configured or the server has
	// no checksums.
	SHA256 *string
}

// Put stores an object with attributes, if the condition holds. If S3 accepts sums.SHA256 but does not confirm that the
// object has this hash, the error is EAGAIN.
func (b *Bucket) Put(
	ctx context.Context, key string, a *s3object.Attributes, c Condition, body s3object.Content, sums Sums,
) (Result, error) {
	growStack()
	w := conditionalWrite{
		key: key, name: newName(), condition: c, supported: b.Profile.HasConditionalPut(c.Absent),
		timeout: silenceTimeout,
	}
	if sums.CRC32C == nil {
		var err error
		if sums.CRC32C, err = s3object.CRC32COf(body); err != nil {
			return Result{}, err
		}
	}
	var sent *string // SHA-256 that S3 has to confirm
	w.send = func(ctx context.Context, c Condition) (Result, error) {
		content, err := newSentBody(ctx, body)
		if err != nil {
			return Result{}, err
		}
		in := &s3.PutObjectInput{Bucket: &b.Name, Key: &key, Body: content, IfMatch: c.ifMatch(&b.Profile),
			IfNoneMatch: c.ifNoneMatch()}
		a.ApplyToPut(in)
		in.Metadata = withName(in.Metadata, w.name)
		out, err := call(ctx, b, b.client.PutObject, in, b.withSum(in, sums))
		sent = in.ChecksumSHA256
		switch {
		case err != nil:
			return Result{}, err
		case !hasETag(out.ETag):
			return Result{}, b.noETag(out.ResultMetadata)
		case sent != nil && aws.ToString(out.ChecksumSHA256) != *sent:
			return Result{}, errNoSHA256 // HeadObject may have it
		case out.ChecksumCRC32C == nil:
			out.ChecksumCRC32C = in.ChecksumCRC32C // S3 has verified it
		}
		made := newResult(*out.ETag, out.ResultMetadata, out.ChecksumCRC32C, out.ChecksumCRC64NVME, out.ChecksumCRC32,
			out.ChecksumSHA256)
		made.Name = in.Metadata[s3object.WriteKey]
		return made, nil
	}
	made, err := b.perform(ctx, w)
	if err == nil && sent != nil && made.Checksum != SHA256Prefix+*sent {
		return Result{}, unknown(errNoSHA256)
	}
	return made, c.replacedIfGone(err)
}

// errNoSHA256 is returned if S3 has stored an object but does not return the SHA-256 that the request contained.
var errNoSHA256 = fmt.Errorf("S3 response has no SHA-256 of the object: %w", io.ErrUnexpectedEOF)

// withSum returns an option that adds the checksum of the body to a PutObject. A request can have only one: the
// configured algorithm, or else the SHA-256, or else the CRC-32C. If the server or the configuration of the client does
// not allow them, it is a Content-MD5.
func (b *Bucket) withSum(in *s3.PutObjectInput, sums Sums) func(*s3.Options) {
	if !b.Profile.Checksums {
		in.ChecksumAlgorithm = ""
	}
	return func(o *s3.Options) {
		switch algorithm := in.ChecksumAlgorithm; {
		case algorithm == types.ChecksumAlgorithmSha256:
			in.ChecksumSHA256 = sums.SHA256 // if it is nil, the SDK computes it
		case algorithm != "" && algorithm != s3object.Algorithm: // the SDK computes it
		case !b.sendsChecksums(o):
			withMD5(o)
		case algorithm == "" && sums.SHA256 != nil:
			in.ChecksumSHA256 = sums.SHA256
			unsigned(o)
		default:
			in.ChecksumCRC32C = sums.CRC32C
			unsigned(o)
		}
	}
}
