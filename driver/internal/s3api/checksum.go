package s3api

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// WithoutChecksums is an option of S3 clients. It keeps the SDK from adding a checksum to a request, and from asking
// for one in the response. Unlike the SDK's own "when required" it includes DeleteObjects, whose callers must add a
// Content-MD5. Checksums in the input of a request are sent.
func WithoutChecksums(stack *middleware.Stack) error {
	for _, id := range []string{"AWSChecksum:SetupInputContext", "AWSChecksum:SetupOutputContext"} {
		_, _ = stack.Initialize.Remove(id) // most operations have neither, and no operation has both
	}
	return nil
}

// applyProfile is an option of every request. Servers without checksums may refuse requests that mention one.
func (b *Bucket) applyProfile(o *s3.Options) {
	if !b.Profile.Checksums {
		o.APIOptions = append(o.APIOptions, WithoutChecksums)
	}
}

// checksumMode asks HeadObject for the checksum of an object if the server keeps one.
func (b *Bucket) checksumMode() types.ChecksumMode {
	if b.Profile.Checksums {
		return types.ChecksumModeEnabled
	}
	return ""
}

// sendsChecksums reports whether the server takes checksums and the configuration of the client lets it send them.
// "request_checksum_calculation = when_required" forbids it.
func (b *Bucket) sendsChecksums(o *s3.Options) bool {
	return b.Profile.Checksums && o.RequestChecksumCalculation != aws.RequestChecksumCalculationWhenRequired
}

// unsigned leaves the body out of the signature, for a request that has a checksum of its body.
func unsigned(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
}

// withoutChecksum keeps the SDK from sending a checksum with a part. S3 takes one only in an upload that was created
// for its algorithm, and in such an upload MinIO refuses parts that are copied. TLS, or the signature where there is
// none, protects the bytes on their way.
func withoutChecksum(o *s3.Options) {
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
}

// withMD5 sends a Content-MD5 in place of a checksum, which each server takes. In a bucket whose Object Lock has a
// default retention AWS wants one of the two.
func withMD5(o *s3.Options) {
	withoutChecksum(o)
	o.APIOptions = append(o.APIOptions, smithyhttp.AddContentChecksumMiddleware)
}

// StoredHash returns the size of an object, and its hash if S3 has one.
func (b *Bucket) StoredHash(ctx context.Context, key, algorithm string) (sum []byte, size int64, err error) {
	out, err := b.look(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	if algorithm == "MD5" && b.Profile.MD5ETags && s3object.FromHead(out).Encryption.KeepsMD5() {
		sum = s3object.MD5OfETag(aws.ToString(out.ETag))
	}
	if sum == nil {
		sum = s3object.ChecksumOf(out, algorithm)
	}
	return sum, aws.ToInt64(out.ContentLength), nil
}
