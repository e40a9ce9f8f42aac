package s3api

import (
	"encoding/base64"
	"hash/crc32"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// ChecksumAlgorithm is what bytes are summed up with that S3 shall store: CRC-32C, for which processors have an instruction. S3
// compares the sum, which is in the signed headers of a request, with what has arrived. Headers all S3 servers take or pass over,
// where some break on the trailers that the SDK sends of itself.
//
// With the sum the signature need not be over the bytes. That would be by SHA-256 where there is no TLS, and takes the time that
// everything else together does, here and in S3.
const ChecksumAlgorithm = types.ChecksumAlgorithmCrc32c

// sendsChecksums tells whether a client is configured to send checksums: it is unless "request_checksum_calculation = when_required"
// says otherwise, for a server that does not take them.
func sendsChecksums(o *s3.Options) bool {
	return o.RequestChecksumCalculation != aws.RequestChecksumCalculationWhenRequired
}

// sendsChecksums tells whether a client is configured to send checksums, and the server takes them.
func (b *Bucket) sendsChecksums(o *s3.Options) bool { return b.Profile.Checksums && sendsChecksums(o) }

// checksumOfContent is the sum of a small body. Without it the SDK would send one in a trailer over TLS.
func checksumOfContent(c Content) (*string, error) {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if _, err := io.Copy(h, io.NewSectionReader(c, 0, c.Size())); err != nil {
		return nil, err
	}
	return aws.String(base64.StdEncoding.EncodeToString(h.Sum(nil))), nil
}

// unsigned leaves the bytes of a request that has their checksum out of its signature.
func unsigned(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
}

// withoutChecksum keeps the SDK from sending a checksum with a part. S3 takes one only in an upload that was created for its
// algorithm, and in such an upload MinIO refuses parts that are copied. TLS, or the signature where there is none, protects the
// bytes on their way.
func withoutChecksum(o *s3.Options) {
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
}
