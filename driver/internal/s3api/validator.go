package s3api

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// weak begins an ETag that no request can compare, because it does not identify the bytes of an object (RFC 9110,
// section 8.8.1).
const weak = `W/"`

// validator returns a string that distinguishes the versions of an object: the ETag or, if S3 returns none, a weak ETag
// made from the size and the time in seconds. versitygw has no ETag for files that it has not stored itself.
func validator(etag *string, size *int64, modified *time.Time) string {
	if hasETag(etag) {
		return *etag
	}
	return fmt.Sprintf(`%s%d-%d"`, weak, aws.ToInt64(size), aws.ToTime(modified).Unix())
}

// hasETag reports whether a response has an ETag. In listings it may be empty.
func hasETag(etag *string) bool {
	value := strings.Trim(aws.ToString(etag), `"`)
	return value != "" && value != swiftNoETag
}

// sameETag reports whether two ETags are equal. Some responses have ETags in quotes and some have them without.
func sameETag(a, b string) bool { return strings.Trim(a, `"`) == strings.Trim(b, `"`) }

// swiftNoETag is the ETag in the response of Swift to a copy that it has not made.
const swiftNoETag = "None"

// noETag returns the error for a response to a write that has no ETag.
func (b *Bucket) noETag(response middleware.Metadata) error {
	if b.Profile.OvertakenSuccess && isFromS3(response) {
		return s3error.ErrOvertaken
	}
	return s3error.ErrNoETag
}

// isWeak reports whether S3 cannot compare an ETag. The bucket then checks conditions itself.
func isWeak(etag string) bool { return strings.HasPrefix(etag, weak) }

// unmodifiedSince returns the value of If-Unmodified-Since for this version. It rounds up, because the time of a
// version may have fractions of a second that S3 does not return.
func (v *Version) unmodifiedSince() *time.Time {
	return aws.Time(v.ModTime.Truncate(time.Second).Add(time.Second))
}
