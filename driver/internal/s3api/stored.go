package s3api

import (
	"strings"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// A Stored is what S3 has answered to the request that made an object visible. Without an answer it has what a look at the object has shown.
type Stored struct {
	ETag string // with its quotes

	// Checksum is the algorithm, a colon and the checksum in base64, like crc32c:yZRlqg==. That of a multipart upload may end with a hyphen and the
	// number of parts, of whose checksums it is one. It is empty where S3 has told none.
	Checksum string

	RequestID string // x-amz-request-id, empty without an answer
}

// stored describes an answer. The checksums are by algorithm; S3 tells one.
func stored(etag string, answer middleware.Metadata, checksums map[string]*string) Stored {
	s := Stored{ETag: etag}
	s.RequestID, _ = awsmiddleware.GetRequestIDMetadata(answer)
	for algorithm, sum := range checksums {
		if sum != nil {
			s.Checksum = strings.ToLower(algorithm) + ":" + *sum
		}
	}
	return s
}
