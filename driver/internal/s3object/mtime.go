package s3object

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// MTimeKey is the user metadata that holds a modification time that was set: decimal seconds since 1970 with up to
// nine digits after the point, as rclone has it (https://rclone.org/s3/#modification-times-and-hashes).
const MTimeKey = "mtime"

const nanoDigits = 9 // of a second

// NameLanguageKey is the user metadata for the language of an object's name: a language tag (BCP 47). The client that
// stores the object may set it. The header is x-amz-meta-name-language; Content-Language is that of the content.
const NameLanguageKey = "name-language"

// formatMTime writes the value of MTimeKey.
func formatMTime(t time.Time) string {
	sign, seconds, nanos := "", t.Unix(), int64(t.Nanosecond())
	if seconds < 0 { // nanoseconds count forward, digits count away from zero
		sign, seconds = "-", -seconds
		if nanos > 0 {
			seconds, nanos = seconds-1, int64(time.Second)-nanos
		}
	}
	return fmt.Sprintf("%s%d.%09d", sign, seconds, nanos)
}

// parseMTime reads the value of MTimeKey. Others write it too, so what has no four-digit year is not taken for a time.
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

// MTime is the modification time that was set, and false where there is none.
func (a *Attributes) MTime() (time.Time, bool) { return parseMTime(a.Metadata[MTimeKey]) }

// NameLanguage is the language tag of the name, empty where there is none.
func (a *Attributes) NameLanguage() string { return a.Metadata[NameLanguageKey] }

// MediaType is the Content-Type.
func (a *Attributes) MediaType() string { return aws.ToString(a.ContentType) }
