package s3api

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// Stamp returns metadata that identifies this version, which HeadObject has described, and the key of its copy. So a
// later object with the same bytes does not count as the source, and an object that another program copies on, with its
// metadata, does not count as the copy.
func (v *Version) Stamp(target *Bucket, to string) string {
	h := sha256.New()
	for _, text := range []string{v.Bucket.Name, v.Key, v.Identity(), target.Name, to} {
		_, _ = h.Write([]byte(strconv.Itoa(len(text)) + ":" + text)) // never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// IsStampedCopyOf reports whether the stamp of this version identifies the original. HeadObject has described both.
func (v *Version) IsStampedCopyOf(original *Version) bool {
	stamp := v.metadata[s3object.CopyStampKey]
	return stamp != "" && stamp == original.Stamp(v.Bucket, v.Key)
}

// IsStamped reports whether this version, which HeadObject has described, has a stamp.
func (v *Version) IsStamped() bool { return v.metadata[s3object.CopyStampKey] != "" }

// ShowsCopy reports whether sizes and ETags prove that a copy has the bytes of this version. An ETag is the MD5 of the
// bytes, or for a copy of one part the MD5 of that MD5. ETags prove nothing for other objects that were uploaded or
// copied by parts, unless both have the same parts, and nothing on servers with other ETags.
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

// IsCopiedTo reports whether an object is proven to have the bytes of this version: by ETags, by the stamp of one of
// the two, or by S3's checksums of all bytes. Names, sizes and times prove nothing. It takes two requests, or none if
// sizes or ETags suffice. The error is ESTALE if another client has replaced one of the two.
func (v *Version) IsCopiedTo(ctx context.Context, copied *Version) (bool, error) {
	if v.Size != copied.Size || v.ShowsCopy(copied) {
		return v.Size == copied.Size, nil
	}
	if v.Looked && copied.Looked && v.sharesStamp(copied) {
		return true, nil
	}
	source, err := v.again(ctx)
	if err != nil {
		return false, err
	}
	made, err := copied.again(ctx)
	if err != nil {
		return false, err
	}
	from, to := v.Bucket.version(v.Key, source), copied.Bucket.version(copied.Key, made)
	return from.ShowsCopy(&to) || from.sharesStamp(&to) || s3object.SameContent(source, made), nil
}

// sharesStamp reports whether the stamp of one version identifies the other one.
func (v *Version) sharesStamp(other *Version) bool {
	return v.IsStampedCopyOf(other) || other.IsStampedCopyOf(v)
}

// again requests a version that comes from a listing. The error is ESTALE if another client has replaced or deleted it.
func (v *Version) again(ctx context.Context) (*s3.HeadObjectOutput, error) {
	object, err := v.Bucket.look(ctx, v.Key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errReplaced
	case err != nil:
		return nil, err
	}
	now := v.Bucket.version(v.Key, object)
	if !v.sameSizeAndETag(now) && !v.ListedOtherwise(now, object.SSECustomerAlgorithm != nil) {
		return nil, errReplaced
	}
	return object, nil
}
