package driver

import (
	"crypto/md5" //nolint:gosec // what S3 has
	"encoding/hex"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

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
	return e.algorithm == "" || e.algorithm == types.ServerSideEncryptionAes256
}
