package s3object_test

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// etagOf returns the ETag of an object with these bytes.
func etagOf(content []byte) *string {
	sum := md5.Sum(content)
	return aws.String(`"` + hex.EncodeToString(sum[:]) + `"`)
}

// TestOfObject reads the hash of an object from a HeadObject response.
func TestOfObject(t *testing.T) {
	content := []byte("content")
	sum := s3object.NewHash("CRC32")
	_, _ = sum.Write(content) // never fails
	crc := aws.String(base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	whole, parts := etagOf(content), aws.String(`"900150983cd24fb0d6963f7d28e17f72-2"`)
	for name, test := range map[string]struct {
		object s3.HeadObjectOutput
		known  bool
	}{
		"full-object": {s3.HeadObjectOutput{ETag: parts, ChecksumType: types.ChecksumTypeFullObject,
			ChecksumCRC32: crc}, true},
		"composite": {s3.HeadObjectOutput{ETag: parts, ChecksumType: types.ChecksumTypeComposite,
			ChecksumCRC32: crc}, false},
		"no-type":                {s3.HeadObjectOutput{ETag: whole, ChecksumCRC32: crc}, true},
		"no-type-and-parts":      {s3.HeadObjectOutput{ETag: parts, ChecksumCRC32: crc}, false},
		"other-algorithm":        {s3.HeadObjectOutput{ETag: whole, ChecksumSHA256: crc}, false},
		"number-of-parts-at-end": {s3.HeadObjectOutput{ETag: whole, ChecksumCRC32: aws.String(*crc + "-2")}, false},
		"too-short":              {s3.HeadObjectOutput{ETag: whole, ChecksumCRC32: aws.String("AAA=")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := s3object.ChecksumOf(&test.object, "CRC32")
			if test.known && !bytes.Equal(got, sum.Sum(nil)) || !test.known && got != nil {
				t.Errorf("%x, known %t", got, test.known)
			}
		})
	}
}

func TestMD5OfETag(t *testing.T) {
	for etag, known := range map[string]bool{
		`"900150983cd24fb0d6963f7d28e17f72"`: true, "900150983cd24fb0d6963f7d28e17f72": true,
		`"900150983cd24fb0d6963f7d28e17f72-1"`: false, `"900150983cd24fb0d6963f7d28e17f"`: false,
		`"not hexadecimal"`: false, "": false,
	} {
		if got := s3object.MD5OfETag(etag); (got != nil) != known {
			t.Errorf("%s: %x", etag, got)
		}
	}
}
