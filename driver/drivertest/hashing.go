package drivertest

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io/fs"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func hashes() map[string]func() hash.Hash {
	return map[string]func() hash.Hash{
		"SHA-256": sha256.New, "SHA-512": sha512.New, "SHA-1": sha1.New, "MD5": md5.New,
		"CRC32": func() hash.Hash { return crc32.NewIEEE() },
	}
}

func testHash(t *testing.T, h Harness) {
	x := h.open(t, nil)
	for _, size := range []int{0, 1000, 2*h.PartSize + 1} {
		name := fmt.Sprintf("%d-bytes", size)
		x.write(name, random(size))
		for algorithm := range hashes() {
			for _, r := range []struct{ from, to, end int64 }{
				{0, -1, int64(size)},
				{0, int64(size), int64(size)},
				{0, int64(size) + 7, int64(size)},
				{0, int64(size) / 2, int64(size) / 2},
				{int64(size) / 3, int64(size) / 2, int64(size) / 2},
				{int64(size) / 3, -1, int64(size)},
				{int64(size), -1, int64(size)},
			} {
				x.run(fmt.Sprintf("%s-of-%s-from-%d-to-%d", algorithm, name, r.from, r.to), func(x *fixture) {
					x.wantHash(name, algorithm, r.from, r.to, random(size)[r.from:r.end], r.end)
				})
			}
		}
	}
	x.run("stored", func(x *fixture) { x.testStoredHash() })
	x.run("encrypted", func(x *fixture) {
		x.putWithAttributes("encrypted", random(1000))
		x.wantHash("encrypted", "MD5", 0, -1, random(1000), 1000)
	})
	x.run("errors", func(x *fixture) {
		x.putAll("dir/file", "empty/")
		for _, test := range []struct {
			name, algorithm string
			from, to        int64
			kind            error
		}{
			{"missing", "MD5", 0, -1, fs.ErrNotExist},
			{"missing", "MD5", 1, -1, fs.ErrNotExist},
			{"dir", "SHA-256", 0, -1, syscall.EISDIR},
			{"dir", "SHA-256", 1, 2, syscall.EISDIR},
			{"dir/", "SHA-256", 0, -1, syscall.EISDIR},
			{"empty", "SHA-256", 0, -1, syscall.EISDIR},
			{"/", "SHA-256", 0, -1, syscall.EISDIR},
			{"1000-bytes", "SHA-256", 1001, -1, fs.ErrInvalid},
			{"1000-bytes", "SHA-256", -1, -1, fs.ErrInvalid},
			{"1000-bytes", "CRC-37", 0, -1, errors.ErrUnsupported},
			{"\xfe", "MD5", 0, -1, syscall.EILSEQ},
		} {
			_, _, err := x.Hash(x.Context(), test.name, test.algorithm, test.from, test.to)
			wantError(x, err, test.kind)
		}
	})
	x.run("canceled", func(x *fixture) {
		ctx, cancel := context.WithCancelCause(x.Context())
		cause := errors.New("the client has disconnected")
		x.spy.After(func(operation string, _ any) error {
			if operation == "GetObject" {
				cancel(cause)
			}
			return nil
		})
		defer x.spy.After(nil)
		_, _, err := x.Hash(ctx, fmt.Sprintf("%d-bytes", 2*h.PartSize+1), "SHA-512", 0, -1)
		wantError(x, err, cause)
	})
}

// wantHash compares the hash of a range with the hash of the bytes.
func (x *fixture) wantHash(name, algorithm string, from, to int64, content []byte, wantEnd int64) {
	x.Helper()
	h := hashes()[algorithm]()
	h.Write(content)
	sum, end, err := x.Hash(x.Context(), name, algorithm, from, to)
	if err != nil || !bytes.Equal(sum, h.Sum(nil)) || end != wantEnd {
		x.Errorf("%s of %s is %x up to %d, %v; want %x up to %d", algorithm, name, sum, end, err, h.Sum(nil), wantEnd)
	}
}

// testStoredHash checks that the driver uses a hash that S3 has stored, and reads the file otherwise.
func (x *fixture) testStoredHash() {
	for algorithm, stored := range map[string]types.ChecksumAlgorithm{
		"SHA-256": types.ChecksumAlgorithmSha256, "SHA-1": types.ChecksumAlgorithmSha1,
		"CRC32": types.ChecksumAlgorithmCrc32, "MD5": "",
	} {
		key := "stored-" + algorithm
		_, err := x.client.PutObject(x.Context(), &s3.PutObjectInput{
			Bucket: &x.bucket, Key: &key, Body: bytes.NewReader(random(1000)), ChecksumAlgorithm: stored,
		})
		x.must(err)
		x.rename(key, key+"-renamed")
		x.spy.Reset()
		x.wantHash(key+"-renamed", algorithm, 0, -1, random(1000), 1000)
		computed := computedChecksum
		if algorithm == "MD5" {
			computed = computedMD5
		}
		want := 1 + x.requestsFor(computed)
		if n, reads := x.spy.Total(), x.spy.Counts()["GetObject"]; n != want || reads != want-1 {
			x.Errorf("%s took %d requests, want %d: %v", algorithm, n, want, x.spy.Counts())
		}
	}
}
