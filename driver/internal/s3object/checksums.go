package s3object

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// NewHash returns the hash function with a name from IANA's registry, or with the name CRC32 (ISO 3309). It returns nil
// for other names. See https://www.iana.org/assignments/hash-function-text-names
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

// ChecksumOf returns the checksum of a whole object, or nil if S3 has none. A checksum of the checksums of the parts
// does not count.
func ChecksumOf(out *s3.HeadObjectOutput, algorithm string) []byte {
	if !hasWholeChecksum(out) {
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

// MD5OfETag returns the MD5 in the ETag of an unencrypted object. It returns nil for the ETag of an object that was
// uploaded in parts.
func MD5OfETag(etag string) []byte {
	sum, err := hex.DecodeString(strings.Trim(etag, `"`))
	if err != nil || len(sum) != md5.Size {
		return nil
	}
	return sum
}

// hasWholeChecksum reports whether the checksum of an object, if it has one, covers all its bytes instead of the
// checksums of its parts. If the server does not return the type of the checksum, an ETag with a hyphen shows that the
// object was uploaded in parts.
func hasWholeChecksum(object *s3.HeadObjectOutput) bool {
	if object.ChecksumType == "" {
		return !strings.Contains(aws.ToString(object.ETag), "-")
	}
	return object.ChecksumType == types.ChecksumTypeFullObject
}

// Algorithm is the checksum that S3 stores with new objects: CRC-32C, for which processors have an instruction. It is
// sent in a signed header, and S3 compares it with the bytes that it receives. All S3 servers accept or ignore this
// header, but some fail on the trailers that the SDK sends by default.
//
// With the checksum, the signature need not cover the body. Without TLS, it would need a SHA-256 of the body, which
// takes as much time as everything else together, both here and in S3.
const Algorithm = types.ChecksumAlgorithmCrc32c

// CRC32COf returns the checksum of a small body. Without it, the SDK would send one in a trailer over TLS.
func CRC32COf(c Content) (*string, error) {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if _, err := io.Copy(h, io.NewSectionReader(c, 0, c.Size())); err != nil {
		return nil, err
	}
	return aws.String(base64.StdEncoding.EncodeToString(h.Sum(nil))), nil
}

// A Content is the data of an object. It can be read several times, also by several goroutines at the same time.
type Content interface {
	io.ReadSeeker
	io.ReaderAt
	Size() int64
}
