package s3api

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// sendsChecksums tells whether the server takes checksums, and the configuration of the client lets it send them.
// "request_checksum_calculation = when_required" forbids it.
func (b *Bucket) sendsChecksums(o *s3.Options) bool {
	return b.Profile.Checksums && o.RequestChecksumCalculation != aws.RequestChecksumCalculationWhenRequired
}

// unsigned leaves the body out of the signature, for a request that has a checksum of its body.
func unsigned(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
}

// withoutChecksum keeps the SDK from sending a checksum with a part. S3 takes one only in an upload that was created for its
// algorithm, and in such an upload MinIO refuses parts that are copied. TLS, or the signature where there is none, protects the
// bytes on their way.
func withoutChecksum(o *s3.Options) {
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
}
