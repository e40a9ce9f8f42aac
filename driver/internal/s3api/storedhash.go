package s3api

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/attributes"
)

// NewHash returns the function that IANA's registry of hash functions knows by a name, or CRC32 (that of ISO 3309), and nil for others:
// https://www.iana.org/assignments/hash-function-text-names
func NewHash(algorithm string) hash.Hash {
	switch algorithm {
	case "SHA-256":
		return sha256.New()
	case "SHA-512":
		return sha512.New()
	case "SHA-1":
		return sha1.New()
	case "MD5":
		return md5.New()
	case "CRC32":
		return crc32.NewIEEE()
	}
	return nil
}

// StoredHash asks for the size of an object, and for its hash if S3 has that.
func (b *Bucket) StoredHash(ctx context.Context, key, algorithm string) (sum []byte, size int64, err error) {
	out, err := b.headObject(ctx, &s3.HeadObjectInput{Key: &key, ChecksumMode: types.ChecksumModeEnabled})
	if err != nil {
		return nil, 0, err
	}
	if algorithm == "MD5" && b.Profile.MD5ETags && attributes.Of(out).Encryption.KeepsMD5() {
		sum = MD5OfETag(aws.ToString(out.ETag))
	}
	if sum == nil {
		sum = checksumOf(out, algorithm)
	}
	return sum, aws.ToInt64(out.ContentLength), nil
}

// checksumOf returns the checksum of a whole object. A checksum of the checksums of parts is no hash of the bytes. Some servers do not name
// its type. There it belongs to objects of several parts, whose ETags have a hyphen.
func checksumOf(out *s3.HeadObjectOutput, algorithm string) []byte {
	if out.ChecksumType == types.ChecksumTypeComposite || out.ChecksumType == "" && strings.Contains(aws.ToString(out.ETag), "-") {
		return nil
	}
	stored := map[string]*string{
		"SHA-256": out.ChecksumSHA256, "SHA-512": out.ChecksumSHA512, "SHA-1": out.ChecksumSHA1,
		"MD5": out.ChecksumMD5, "CRC32": out.ChecksumCRC32,
	}[algorithm]
	sum, err := base64.StdEncoding.DecodeString(aws.ToString(stored))
	if err != nil || len(sum) != NewHash(algorithm).Size() {
		return nil
	}
	return sum
}

// MD5OfETag reads an ETag that is the MD5 of the bytes, if they were not encrypted, and returns nil for that of an object which was put
// together of parts.
func MD5OfETag(etag string) []byte {
	sum, err := hex.DecodeString(strings.Trim(etag, `"`))
	if err != nil || len(sum) != md5.Size {
		return nil
	}
	return sum
}
