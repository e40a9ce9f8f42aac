package s3api

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// weak begins an ETag that no request can compare, because it does not stand for the bytes of an object (RFC 9110,
// section 8.8.1).
const weak = `W/"`

// validator returns what tells one version of an object from another: the ETag or, where S3 has none, its size and
// the second in which it was stored. versitygw has no ETag of files that it has not stored itself.
func validator(etag *string, size *int64, modified *time.Time) string {
	if hasETag(etag) {
		return *etag
	}
	return fmt.Sprintf(`%s%d-%d"`, weak, aws.ToInt64(size), aws.ToTime(modified).Unix())
}

// hasETag tells whether an answer has an ETag. In listings it may be empty.
func hasETag(etag *string) bool {
	value := strings.Trim(aws.ToString(etag), `"`)
	return value != "" && value != noneOfSwift
}

// sameETag tells whether two ETags are equal. Some answers have one in quotes, and some without.
func sameETag(a, b string) bool { return strings.Trim(a, `"`) == strings.Trim(b, `"`) }

// noneOfSwift is the ETag in Swift's answer to a copy that it has not made.
const noneOfSwift = "None"

// noETag is the error of an answer to a write that has no ETag.
func (b *Bucket) noETag(answer middleware.Metadata) error {
	if b.Profile.OvertakenAnswers && isOfS3(answer) {
		return s3error.ErrOvertaken
	}
	return s3error.ErrNoETag
}

// isWeak tells whether S3 cannot compare an ETag. The driver then looks whether a condition holds.
func isWeak(etag string) bool { return strings.HasPrefix(etag, weak) }

// unmodifiedSince is the condition of a request that reads a version, by its time. The time of a version may have
// parts of a second that answers do not show.
func (v *Version) unmodifiedSince() *time.Time {
	return aws.Time(v.ModTime.Truncate(time.Second).Add(time.Second))
}
