package s3api

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// Stamp returns metadata that names a version and the key of its copy. So an object that another program copies on,
// with its metadata, does not count as the copy.
func (v *Version) Stamp(target *Bucket, to string) string {
	h := sha256.New()
	for _, text := range []string{v.Bucket.Name, v.Key, strings.Trim(v.ETag, `"`), strconv.FormatInt(v.Size, 10),
		target.Name, to} {
		_, _ = h.Write([]byte(strconv.Itoa(len(text)) + ":" + text)) // never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// IsStampedCopyOf tells whether the stamp of an object, which a look has shown, names another version.
func (v *Version) IsStampedCopyOf(original *Version) bool {
	stamp := v.metadata[s3object.CopyStampKey]
	return stamp != "" && stamp == original.Stamp(v.Bucket, v.Key)
}

// IsStamped tells whether an object, which a look has shown, has a stamp.
func (v *Version) IsStamped() bool { return v.metadata[s3object.CopyStampKey] != "" }

// ShowsCopy tells whether sizes and ETags show that a copy has the bytes of this version. An ETag is the MD5 of the
// bytes, or for a copy of one part the MD5 of that. It shows nothing of other objects that were uploaded or copied by
// parts, unless they were cut alike, and nothing on servers whose ETags are made otherwise.
func (v *Version) ShowsCopy(copied *Version) bool {
	switch {
	case v.Size != copied.Size:
		return false
	case v.Size == 0:
		return true
	case !v.Bucket.Profile.MD5ETags, isWeak(v.ETag):
		return false
	case sameETag(v.ETag, copied.ETag):
		return true
	}
	whole := s3object.MD5OfETag(v.ETag)
	ofOnePart := md5.Sum(whole)
	return whole != nil && sameETag(copied.ETag, hex.EncodeToString(ofOnePart[:])+"-1")
}

// IsCopiedTo tells whether an object is a proven copy of this version: by ETags, by its stamp, or by S3's checksums
// of all bytes. Names, sizes and times prove nothing. It takes up to two requests, mostly none. The error is ESTALE
// if another client has replaced one of the two.
func (v *Version) IsCopiedTo(ctx context.Context, copied *Version) (bool, error) {
	if v.Size != copied.Size || v.ShowsCopy(copied) {
		return v.Size == copied.Size, nil
	}
	made, err := copied.Bucket.look(ctx, copied.Key)
	if err != nil {
		return false, replacedIfMissing(err)
	}
	if !copied.isShownBy(made) {
		return false, errReplaced
	}
	return v.hasBytesOf(ctx, copied.Bucket, copied.Key, made)
}

// isShownBy tells whether a look shows this version, which may come from a listing.
func (v *Version) isShownBy(object *s3.HeadObjectOutput) bool {
	now := v.Bucket.version(v.Key, object)
	return v.sameSizeAndETag(now) || v.ListedOtherwise(now, object.SSECustomerAlgorithm != nil)
}

// hasBytesOf tells whether an object has the bytes of this version.
func (v *Version) hasBytesOf(ctx context.Context, b *Bucket, key string, object *s3.HeadObjectOutput) (bool, error) {
	has := b.version(key, object)
	shows := func(v Version) bool {
		return v.ShowsCopy(&has) || object.Metadata[s3object.CopyStampKey] == v.Stamp(b, key)
	}
	switch {
	case v.Size != has.Size:
		return false, nil
	case shows(*v):
		return true, nil
	}
	source, err := v.Bucket.look(ctx, v.Key)
	if err != nil {
		return false, replacedIfMissing(err)
	}
	if !v.isShownBy(source) {
		return false, errReplaced
	}
	return shows(v.Bucket.version(v.Key, source)) || s3object.SameContent(source, object), nil
}

func replacedIfMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errReplaced
	}
	return err
}

// Is tells whether two versions are the same one.
func (v *Version) Is(other Version) bool {
	return v.Bucket.Name == other.Bucket.Name && v.Key == other.Key && v.ETag == other.ETag &&
		v.ModTime.Equal(other.ModTime) && v.Name == other.Name
}
