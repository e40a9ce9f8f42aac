package s3api

import (
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
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

// newResult returns the result for a response that has at most one of the checksums.
func newResult(etag string, response middleware.Metadata, crc32c, crc64nvme, crc32 *string) Result {
	s := Result{ETag: etag}
	s.RequestID, _ = awsmiddleware.GetRequestIDMetadata(response)
	switch {
	case crc32c != nil:
		s.Checksum = "crc32c:" + *crc32c
	case crc64nvme != nil:
		s.Checksum = "crc64nvme:" + *crc64nvme
	case crc32 != nil:
		s.Checksum = "crc32:" + *crc32
	}
	return s
}
