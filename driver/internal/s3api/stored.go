package s3api

import (
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// A Stored is what S3 has answered to the request that made an object visible, or that reads it. Without an answer it
// has what a look has shown.
type Stored struct {
	ETag string // with its quotes
	// Checksum is the algorithm, a colon and the checksum in base64, like crc32c:yZRlqg==. That of a multipart upload
	// may end with a hyphen and the number of parts, of whose checksums it is one. It is empty where S3 has told
	// none.
	Checksum string

	RequestID string // x-amz-request-id, empty without an answer

	// Name is that of the request, by which a look tells the object from others that were stored later, see
	// [Version]. It is empty for an object that was read, and for one that has no room for it in its metadata.
	Name string
}

// stored describes an answer with one of the checksums.
func stored(etag string, answer middleware.Metadata, crc32c, crc64nvme, crc32 *string) Stored {
	s := Stored{ETag: etag}
	s.RequestID, _ = awsmiddleware.GetRequestIDMetadata(answer)
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
