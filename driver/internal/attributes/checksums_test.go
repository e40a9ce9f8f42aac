package attributes_test

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"hash/crc32"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }

// crc32c is the CRC-32C of some bytes, as S3 writes it.
func crc32c(content []byte) *string {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	_, _ = h.Write(content) // it never fails
	return aws.String(base64.StdEncoding.EncodeToString(h.Sum(nil)))
}

// etagOf is the ETag of an object of these bytes.
func etagOf(content []byte) *string {
	sum := md5.Sum(content)
	return aws.String(`"` + hex.EncodeToString(sum[:]) + `"`)
}

// TestHashes sums up "abc" with the function that each name stands for.
func TestHashes(t *testing.T) {
	for name, want := range map[string]string{
		"SHA-256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		"SHA-1":   "a9993e364706816aba3e25717850c26c9cd0d89d",
		"MD5":     "900150983cd24fb0d6963f7d28e17f72",
		"CRC32":   "352441c2",
		"SHA-512": "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a" +
			"2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
		"CRC32C": "", "sha-256": "", "": "",
	} {
		h := attributes.NewHash(name)
		if (h == nil) != (want == "") {
			t.Errorf("%q: %v", name, h)
		}
		if h == nil {
			continue
		}
		_, _ = h.Write([]byte("abc")) // it never fails
		if got := hex.EncodeToString(h.Sum(nil)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestOfObject reads the hash of the bytes from what S3 says of an object.
func TestOfObject(t *testing.T) {
	content := []byte("content")
	sum := attributes.NewHash("CRC32")
	_, _ = sum.Write(content) // it never fails
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
			got := attributes.ChecksumOf(&test.object, "CRC32")
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
		if got := attributes.MD5OfETag(etag); (got != nil) != known {
			t.Errorf("%s: %x", etag, got)
		}
	}
}

// TestEqual compares the checksums of two objects.
func TestEqual(t *testing.T) {
	one, other := crc32c([]byte("one")), crc32c([]byte("other"))
	object := func(kind types.ChecksumType, crc32c *string) *s3.HeadObjectOutput {
		return &s3.HeadObjectOutput{ETag: aws.String(`"e-2"`), ChecksumType: kind, ChecksumCRC32C: crc32c}
	}
	full, composite := types.ChecksumTypeFullObject, types.ChecksumTypeComposite
	for name, test := range map[string]struct {
		a, b *s3.HeadObjectOutput
		want bool
	}{
		"same":              {object(full, one), object(full, one), true},
		"other":             {object(full, one), object(full, other), false},
		"none":              {object(full, nil), object(full, nil), false},
		"one-has-none":      {object(full, one), object(full, nil), false},
		"composite":         {object(composite, one), object(composite, one), false},
		"parts-of-no-type":  {object("", one), object("", one), false},
		"not-the-same-kind": {object(full, one), &s3.HeadObjectOutput{ChecksumType: full, ChecksumSHA1: one}, false},
	} {
		if got := attributes.SameContent(test.a, test.b); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
