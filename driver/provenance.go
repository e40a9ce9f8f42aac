package driver

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/maphash"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// stampKey is the user metadata by which the copy of a file in a directory tells what it is a copy of, where its ETag does not. Its value
// is a [stamp].
const stampKey = "babelftp-copy-of"

// maxMetadata is how many bytes of user metadata S3 takes: https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html
const maxMetadata = 2 << 10

// stamp names a version, and where its copy is. An object that comes to another name with its metadata is so no copy any more.
func (v *version) stamp(target *bucket, to string) string {
	h := sha256.New()
	for _, text := range []string{v.bucket.name, v.key, strings.Trim(v.etag, `"`), strconv.FormatInt(v.size, 10), target.name, to} {
		_, _ = h.Write([]byte(strconv.Itoa(len(text)) + ":" + text)) // never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// stampCopy puts a stamp on the copy that a version will have, where nothing else will show for certain that it is one.
func (f *Fs) stampCopy(v *version, a *attributes, to string) {
	encryption := a.encryption
	if encryption.algorithm == "" {
		encryption = f.opts.Objects.encryption()
	}
	keepsETag := v.bucket.name == f.bucket.name && v.bucket.profile.MD5ETags && md5OfETag(v.etag) != nil &&
		a.encryption.keepsMD5() && encryption.keepsMD5() && f.copiesAtOnce(*v)
	if v.size == 0 || keepsETag {
		return
	}
	value := v.stamp(f.bucket, to)
	bytes := len(stampKey) + len(value)
	for key, value := range a.metadata {
		bytes += len(key) + len(value)
	}
	if bytes > maxMetadata {
		return
	}
	a.metadata = maps.Clone(a.metadata)
	if a.metadata == nil {
		a.metadata = map[string]string{}
	}
	a.metadata[stampKey], a.edited = value, true
}

// A pair is what both directories have under the same name. One of them may have nothing.
type pair struct{ source, copy *version }

// replaced is how many bytes a copy replaces.
func (p pair) replaced() int64 {
	if p.copy == nil {
		return 0
	}
	return p.copy.size
}

// showsCopy tells whether sizes and ETags show that both have the same bytes. An ETag is the MD5 of the bytes, or for a copy of one part
// the MD5 of that. It shows nothing of other objects that were uploaded or copied by parts, unless they were cut alike, and nothing on
// servers whose ETags are made otherwise.
func (p pair) showsCopy() bool {
	switch {
	case p.source.size != p.copy.size:
		return false
	case p.source.size == 0:
		return true
	case !p.source.bucket.profile.MD5ETags:
		return false
	case strings.Trim(p.source.etag, `"`) == strings.Trim(p.copy.etag, `"`):
		return true
	}
	whole := md5OfETag(p.source.etag)
	ofOnePart := md5.Sum(whole)
	return whole != nil && strings.Trim(p.copy.etag, `"`) == hex.EncodeToString(ofOnePart[:])+"-1"
}

// isCopy tells whether one object is proven to be a copy of the other: by ETags, by its stamp, or by checksums of all bytes that S3 has of
// both. Names, sizes and times prove nothing. Most pairs need no request, the others up to two.
func (p pair) isCopy(ctx context.Context) (bool, error) {
	if p.source.size != p.copy.size || p.showsCopy() {
		return p.source.size == p.copy.size, nil
	}
	made, err := p.copy.bucket.look(ctx, p.copy.key)
	if err != nil {
		return false, goneIsChanged(err)
	}
	if now := p.copy.bucket.version(p.copy.key, made); !p.copy.isStill(now) {
		return false, errChanged
	}
	return p.source.isIn(ctx, p.copy.bucket, p.copy.key, made)
}

// isIn tells whether an object has the bytes of this version.
func (v *version) isIn(ctx context.Context, b *bucket, key string, object *s3.HeadObjectOutput) (bool, error) {
	has := b.version(key, object)
	switch p := (pair{source: v, copy: &has}); {
	case v.size != has.size:
		return false, nil
	case p.showsCopy(), object.Metadata[stampKey] == v.stamp(b, key):
		return true, nil
	}
	source, err := v.bucket.look(ctx, v.key)
	if err != nil {
		return false, goneIsChanged(err)
	}
	if !v.isStill(v.bucket.version(v.key, source)) {
		return false, errChanged
	}
	return haveSameChecksum(source, object), nil
}

func goneIsChanged(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errChanged
	}
	return err
}

// haveSameChecksum tells whether S3 has a checksum of all bytes of both objects, and they are equal.
func haveSameChecksum(a, b *s3.HeadObjectOutput) bool {
	if !hasWholeChecksum(a) || !hasWholeChecksum(b) {
		return false
	}
	for _, sums := range [][2]*string{
		{a.ChecksumSHA256, b.ChecksumSHA256}, {a.ChecksumSHA1, b.ChecksumSHA1}, {a.ChecksumCRC64NVME, b.ChecksumCRC64NVME},
		{a.ChecksumCRC32C, b.ChecksumCRC32C}, {a.ChecksumCRC32, b.ChecksumCRC32},
	} {
		if sums[0] != nil && sums[1] != nil {
			return *sums[0] == *sums[1]
		}
	}
	return false
}

// hasWholeChecksum tells whether the checksum of an object, if it has one, is of all its bytes, and not made of those of its parts. Servers
// that do not tell make one of parts for objects whose ETags have a hyphen.
func hasWholeChecksum(object *s3.HeadObjectOutput) bool {
	if object.ChecksumType == "" {
		return !strings.Contains(aws.ToString(object.ETag), "-")
	}
	return object.ChecksumType == types.ChecksumTypeFullObject
}

// fingerprints are those of the versions of a directory that have their copies. They take eight bytes each: there may be millions.
type fingerprints struct {
	seed maphash.Seed

	mu     sync.Mutex
	sums   []uint64
	sorted bool
}

func (f *fingerprints) add(v version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sums, f.sorted = append(f.sums, f.of(v)), false
}

// has tells whether a version is among them. One that is not is taken for one of a million as often as once in 10¹³ times.
func (f *fingerprints) has(v version) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.sorted {
		slices.Sort(f.sums)
		f.sorted = true
	}
	_, found := slices.BinarySearch(f.sums, f.of(v))
	return found
}

func (f *fingerprints) of(v version) uint64 {
	return maphash.String(f.seed, strings.Trim(v.etag, `"`)+" "+strconv.FormatInt(v.size, 10)+" "+v.key)
}
