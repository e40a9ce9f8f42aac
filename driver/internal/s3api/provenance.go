package s3api

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// Stamp returns metadata that identifies this version and the key of its copy. The version must come from HeadObject.
// Because the stamp names both, a later object with the same bytes does not count as the source, and an object that
// another program copies on, together with its metadata, does not count as the copy.
func (v *Version) Stamp(target *Bucket, to string) string {
	h := sha256.New()
	for _, text := range []string{v.Bucket.Name, v.Key, v.Identity(), target.Name, to} {
		_, _ = h.Write([]byte(strconv.Itoa(len(text)) + ":" + text)) // never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// IsStampedCopyOf reports whether the stamp of this version identifies the original. Both versions must come from
// HeadObject.
func (v *Version) IsStampedCopyOf(original *Version) bool {
	stamp := v.metadata[s3object.CopyStampKey]
	return stamp != "" && stamp == original.Stamp(v.Bucket, v.Key)
}

// SharesStamp reports whether one of two versions is a copy of the other one. Both must come from HeadObject.
func (v *Version) SharesStamp(other *Version) bool {
	return v.IsStampedCopyOf(other) || other.IsStampedCopyOf(v)
}

// IsStamped reports whether this version, which must come from HeadObject, has a stamp.
func (v *Version) IsStamped() bool { return v.metadata[s3object.CopyStampKey] != "" }
