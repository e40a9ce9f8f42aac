package s3object

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// MTimeKey is the user metadata with the modification time that a client has set: decimal seconds since 1970 with up to
// nine digits after the point, in the format of rclone (https://rclone.org/s3/#modification-times-and-hashes).
const MTimeKey = "mtime"

const nanoDigits = 9 // digits after the point

// NameLanguageKey is the user metadata with the language of an object's name: a language tag (BCP 47) in the header
// x-amz-meta-name-language. The client that stores the object may set it. Content-Language, by contrast, is the
// language of the content.
const NameLanguageKey = "name-language"

// formatMTime formats a time for MTimeKey.
func formatMTime(t time.Time) string {
	sign, seconds, nanos := "", t.Unix(), int64(t.Nanosecond())
	if seconds < 0 { // nanoseconds count forward, but the digits of a negative number count away from zero
		sign, seconds = "-", -seconds
		if nanos > 0 {
			seconds, nanos = seconds-1, int64(time.Second)-nanos
		}
	}
	return fmt.Sprintf("%s%d.%09d", sign, seconds, nanos)
}

// parseMTime parses the value of MTimeKey. Other programs write it too, so values outside the years 1 to 9999 are
// ignored.
func parseMTime(value string) (time.Time, bool) {
	digits, negative := strings.CutPrefix(value, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	seconds, err := strconv.ParseUint(whole, 10, 63)
	if err != nil {
		return time.Time{}, false
	}
	nanos, err := strconv.ParseUint((fraction + strings.Repeat("0", nanoDigits))[:nanoDigits], 10, 63)
	if err != nil {
		return time.Time{}, false
	}
	t := time.Unix(int64(seconds), int64(nanos))
	if negative {
		t = time.Unix(-int64(seconds), -int64(nanos))
	}
	t = t.UTC()
	return t, t.Year() >= 1 && t.Year() <= 9999
}

// MTime returns the modification time that a client has set, if any.
func (a *Attributes) MTime() (time.Time, bool) { return parseMTime(a.Metadata[MTimeKey]) }

// NameLanguage returns the language tag of the name, or the empty string.
func (a *Attributes) NameLanguage() string { return a.Metadata[NameLanguageKey] }

// MediaType returns the Content-Type.
func (a *Attributes) MediaType() string { return aws.ToString(a.ContentType) }
