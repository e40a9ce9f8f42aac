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
		_, _ = stack.Initialize.Remove(id) // not found is fine: most operations have neither, and none has both
	}
	return nil
}

// applyProfile is an option of every request. Servers without checksums may refuse requests that mention one.
func (b *Bucket) applyProfile(o *s3.Options) {
	if !b.Profile.Checksums {
		o.APIOptions = append(o.APIOptions, WithoutChecksums)
	}
}

// checksumMode makes HeadObject return the checksum of an object if the server keeps one.
func (b *Bucket) checksumMode() types.ChecksumMode {
	if b.Profile.Checksums {
		return types.ChecksumModeEnabled
	}
	return ""
}

// sendsChecksums reports whether the server accepts checksums and the configuration of the client allows sending them.
// "request_checksum_calculation = when_required" forbids it.
func (b *Bucket) sendsChecksums(o *s3.Options) bool {
	return b.Profile.Checksums && o.RequestChecksumCalculation != aws.RequestChecksumCalculationWhenRequired
}

// unsigned leaves the body out of the signature. The request must have a checksum of its body.
func unsigned(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
}

// withoutChecksum keeps the SDK from sending a checksum with a part. S3 accepts one only in an upload that was created
// for its algorithm, and in such an upload MinIO refuses copied parts. TLS protects the bytes in transit, or the
// signature if the connection is not encrypted.
func withoutChecksum(o *s3.Options) {
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
}

// withMD5 sends a Content-MD5, which every server accepts, instead of a checksum. AWS requires one of the two in a
// bucket whose Object Lock has a default retention.
func withMD5(o *s3.Options) {
	withoutChecksum(o)
	o.APIOptions = append(o.APIOptions, smithyhttp.AddContentChecksumMiddleware)
}

// StoredHash returns the size of an object, and its hash if S3 has one.
func (b *Bucket) StoredHash(ctx context.Context, key, algorithm string) (sum []byte, size int64, err error) {
	out, err := b.headWithChecksums(ctx, key)
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
