package driver

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// newHash returns the function that IANA's registry of hash functions knows by a name, or CRC32 (that of ISO 3309), and nil for others:
// https://www.iana.org/assignments/hash-function-text-names
func newHash(algorithm string) hash.Hash {
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

// Hash returns the hash of the bytes [from, to) of a file, and where they end: a negative to, or one beyond the end, stands for the end
// of the file. The algorithms are SHA-256, SHA-512, SHA-1, MD5 and CRC32; others are errors.ErrUnsupported. The end of ctx ends it.
//
// S3 keeps a checksum of most objects. Where it is one of the whole object, and of the algorithm, one request asks for it. Everything
// else is read, in a second one.
//
// An offset beyond the end is an fs.ErrInvalid, a directory EISDIR.
func (f *Fs) Hash(ctx context.Context, name, algorithm string, from, to int64) (sum []byte, end int64, err error) {
	sum, end, err = f.within(ctx).hash(name, algorithm, from, to)
	return sum, end, s3errors.PathError("hash", name, err)
}

func (f *Fs) hash(name, algorithm string, from, to int64) (sum []byte, end int64, err error) {
	key, err := f.keys.Key(name)
	h := newHash(algorithm)
	switch {
	case err != nil:
		return nil, 0, err
	case h == nil:
		return nil, 0, errors.ErrUnsupported
	case f.keys.IsRoot(key):
		return nil, 0, syscall.EISDIR
	case from < 0:
		return nil, 0, s3errors.ErrInvalid
	}
	if from == 0 {
		sum, end, err = f.bucket.storedHash(f.ctx, key, algorithm)
		if err == nil && sum != nil && (to < 0 || to >= end) {
			return sum, end, nil
		}
	}
	if err == nil {
		end, err = f.readInto(h, name, from, to)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := f.statDir(key); err == nil {
			return nil, 0, syscall.EISDIR
		}
	}
	if err != nil {
		return nil, 0, err
	}
	return h.Sum(nil), end, nil
}

// readInto reads the bytes [from, to) of a file, or as many of them as it has, and returns where they end.
func (f *Fs) readInto(w io.Writer, name string, from, to int64) (end int64, err error) {
	file, err := f.OpenAt(name, os.O_RDONLY, from)
	if err != nil {
		return 0, errors.Unwrap(err)
	}
	defer file.Close() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if to < 0 || to >= info.Size() {
		to = info.Size()
		_, err = io.Copy(w, file)
	} else {
		_, err = io.CopyN(w, file, max(0, to-from))
	}
	return to, err
}

// storedHash asks for the size of an object, and for its hash if S3 has that.
func (b *bucket) storedHash(ctx context.Context, key, algorithm string) (sum []byte, size int64, err error) {
	out, err := b.headObject(ctx, &s3.HeadObjectInput{Key: &key, ChecksumMode: types.ChecksumModeEnabled})
	if err != nil {
		return nil, 0, err
	}
	if algorithm == "MD5" && b.profile.MD5ETags && attributesOf(out).encryption.keepsMD5() {
		sum = md5OfETag(aws.ToString(out.ETag))
	}
	if sum == nil {
		sum = checksumOf(out, algorithm)
	}
	return sum, aws.ToInt64(out.ContentLength), nil
}

// checksumOf returns the checksum of a whole object. What S3 made of the checksums of parts is no hash of the bytes; servers that do not
// tell its type make one for objects that were put together of parts, whose ETags have a hyphen.
func checksumOf(out *s3.HeadObjectOutput, algorithm string) []byte {
	if out.ChecksumType == types.ChecksumTypeComposite || out.ChecksumType == "" && strings.Contains(aws.ToString(out.ETag), "-") {
		return nil
	}
	stored := map[string]*string{
		"SHA-256": out.ChecksumSHA256, "SHA-512": out.ChecksumSHA512, "SHA-1": out.ChecksumSHA1,
		"MD5": out.ChecksumMD5, "CRC32": out.ChecksumCRC32,
	}[algorithm]
	sum, err := base64.StdEncoding.DecodeString(aws.ToString(stored))
	if err != nil || len(sum) != newHash(algorithm).Size() {
		return nil
	}
	return sum
}

// md5OfETag reads an ETag that is the MD5 of the bytes, if they were not encrypted, and returns nil for that of an object which was put
// together of parts.
func md5OfETag(etag string) []byte {
	sum, err := hex.DecodeString(strings.Trim(etag, `"`))
	if err != nil || len(sum) != md5.Size {
		return nil
	}
	return sum
}

// keepsMD5 tells whether the ETags of objects that are encrypted so are the MD5 of their bytes:
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html
func (e encryption) keepsMD5() bool {
	return !e.customer && (e.algorithm == "" || e.algorithm == types.ServerSideEncryptionAes256)
}
