package s3api

import (
	"encoding/base64"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// A Result is the result of a request that stores or reads an object, taken from its response. If the response was
// lost, it is taken from HeadObject.
type Result struct {
	ETag string // with quotes
	// Checksum is an algorithm, a colon and the base64-encoded checksum, like crc32c:yZRlqg==. The checksum of a
	// multipart upload may end with a hyphen and the number of parts, because it is a checksum of the checksums of the
	// parts. It is empty if S3 has returned none.
	Checksum string

	RequestID string // x-amz-request-id; empty if the response was lost

	// Name is the random name of the request, which HeadObject shows in the metadata (see [Version]). It is empty for
	// an object that was read, and for an object whose metadata have no room for it.
	Name string
}

// SHA256Prefix precedes a SHA-256 in [Result.Checksum].
const SHA256Prefix = "sha256:"

// newResult returns the result for a response that has at most one of the checksums.
func newResult(etag string, response middleware.Metadata, crc32c, crc64nvme, crc32, sha256 *string) Result {
	s := Result{ETag: etag}
	s.RequestID, _ = awsmiddleware.GetRequestIDMetadata(response)
	switch {
	case crc32c != nil:
		s.Checksum = "crc32c:" + *crc32c
	case crc64nvme != nil:
		s.Checksum = "crc64nvme:" + *crc64nvme
	case crc32 != nil:
		s.Checksum = "crc32:" + *crc32
	case sha256 != nil:
		s.Checksum = SHA256Prefix + *sha256
	}
	return s
}

// resultOfHead returns the result of a write whose response was lost, from the object that it has created. name is the
// name of the write.
func resultOfHead(object *s3.HeadObjectOutput, name string) Result {
	s := Result{ETag: aws.ToString(object.ETag), Name: name}
	if sum := s3object.ChecksumOf(object, "SHA-256"); sum != nil {
		s.Checksum = SHA256Prefix + base64.StdEncoding.EncodeToString(sum)
	}
	return s
}
