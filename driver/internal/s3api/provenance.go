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

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/checksums"
)

// Stamp names a version, and where its copy is. An object that comes to another name with its metadata is so no copy any more.
func (v *Version) Stamp(target *Bucket, to string) string {
	h := sha256.New()
	for _, text := range []string{v.Bucket.Name, v.Key, strings.Trim(v.ETag, `"`), strconv.FormatInt(v.Size, 10), target.Name, to} {
		_, _ = h.Write([]byte(strconv.Itoa(len(text)) + ":" + text)) // never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// ShowsCopy tells whether sizes and ETags show that a copy has the bytes of this version. An ETag is the MD5 of the bytes, or for a copy of one
// part the MD5 of that. It shows nothing of other objects that were uploaded or copied by parts, unless they were cut alike, and nothing on
// servers whose ETags are made otherwise.
func (v *Version) ShowsCopy(copied *Version) bool {
	switch {
	case v.Size != copied.Size:
		return false
	case v.Size == 0:
		return true
	case !v.Bucket.Profile.MD5ETags:
		return false
	case strings.Trim(v.ETag, `"`) == strings.Trim(copied.ETag, `"`):
		return true
	}
	whole := checksums.MD5OfETag(v.ETag)
	ofOnePart := md5.Sum(whole)
	return whole != nil && strings.Trim(copied.ETag, `"`) == hex.EncodeToString(ofOnePart[:])+"-1"
}

// IsCopiedTo tells whether an object is proven to be a copy of this version: by ETags, by its stamp, or by checksums of all bytes that S3 has of
// both. Names, sizes and times prove nothing. Most need no request, the others up to two. ESTALE says that one of both was replaced.
func (v *Version) IsCopiedTo(ctx context.Context, copied *Version) (bool, error) {
	if v.Size != copied.Size || v.ShowsCopy(copied) {
		return v.Size == copied.Size, nil
	}
	made, err := copied.Bucket.look(ctx, copied.Key)
	if err != nil {
		return false, replacedIfMissing(err)
	}
	if now := copied.Bucket.version(copied.Key, made); !copied.isStill(now) {
		return false, errReplaced
	}
	return v.isIn(ctx, copied.Bucket, copied.Key, made)
}

// isIn tells whether an object has the bytes of this version.
func (v *Version) isIn(ctx context.Context, b *Bucket, key string, object *s3.HeadObjectOutput) (bool, error) {
	has := b.version(key, object)
	switch {
	case v.Size != has.Size:
		return false, nil
	case v.ShowsCopy(&has), object.Metadata[attributes.CopyStampKey] == v.Stamp(b, key):
		return true, nil
	}
	source, err := v.Bucket.look(ctx, v.Key)
	if err != nil {
		return false, replacedIfMissing(err)
	}
	if !v.isStill(v.Bucket.version(v.Key, source)) {
		return false, errReplaced
	}
	return checksums.Equal(source, object), nil
}

func replacedIfMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errReplaced
	}
	return err
}

// Is tells whether two versions are the same one.
func (v *Version) Is(other Version) bool {
	return v.Bucket.Name == other.Bucket.Name && v.Key == other.Key && v.ETag == other.ETag && v.ModTime.Equal(other.ModTime)
}
