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

// NewHash returns the function that IANA's registry of hash functions knows by a name, or CRC32 (that of ISO 3309), and
// nil for others: https://www.iana.org/assignments/hash-function-text-names
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

// ChecksumOf returns the checksum of a whole object. A checksum of the checksums of parts is no hash of the bytes.
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

// MD5OfETag reads an ETag that is the MD5 of the bytes, if they were not encrypted, and returns nil for that of an
// object which was put together of parts.
func MD5OfETag(etag string) []byte {
	sum, err := hex.DecodeString(strings.Trim(etag, `"`))
	if err != nil || len(sum) != md5.Size {
		return nil
	}
	return sum
}

// hasWholeChecksum tells whether the checksum of an object, if it has one, is of all its bytes, and not made of those
// of its parts. Servers that do not tell make one of parts for objects whose ETags have a hyphen.
func hasWholeChecksum(object *s3.HeadObjectOutput) bool {
	if object.ChecksumType == "" {
		return !strings.Contains(aws.ToString(object.ETag), "-")
	}
	return object.ChecksumType == types.ChecksumTypeFullObject
}

// Algorithm is the checksum that S3 stores with new objects: CRC-32C, for which processors have an instruction.
// S3 compares the sum, which is in the signed headers of a request, with what has arrived. Headers all S3 servers
// take or pass over, where some break on the trailers that the SDK sends of itself.
//
// With the sum the signature need not be over the bytes. That would be by SHA-256 where there is no TLS, and takes
// the time that everything else together does, here and in S3.
const Algorithm = types.ChecksumAlgorithmCrc32c

// CRC32COf is the sum of a small body. Without it the SDK would send one in a trailer over TLS.
func CRC32COf(c Content) (*string, error) {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if _, err := io.Copy(h, io.NewSectionReader(c, 0, c.Size())); err != nil {
		return nil, err
	}
	return aws.String(base64.StdEncoding.EncodeToString(h.Sum(nil))), nil
}

// A Content is the bytes of an object. It can be read more than once, also by several goroutines at once.
type Content interface {
	io.ReadSeeker
	io.ReaderAt
	Size() int64
}
