package s3client

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// verifyTimeout is how long the requests of verifyProfile may take.
const verifyTimeout = 30 * time.Second

// verifyProfile has a server show what its profile promises: a request on a condition that holds succeeds, and one on a
// condition that does not hold fails. It returns what the server does otherwise, in words for an operator. Its object
// lies below a prefix of keys. A denied request shows nothing. The error is one of the network.
func verifyProfile(ctx context.Context, s *scratch, prefix string, p driver.Profile) (broken []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	p.ExclusivePut, p.ExclusiveComplete = p.PutsOn(true), p.CompletesOn(true)
	x := newSample(s, prefix, &p)
	if err := x.putAgain(ctx); err != nil {
		return nil, unanswered(err)
	}
	for _, promise := range x.promises() {
		if !promise.made {
			continue
		}
		kept, err := promise.kept(ctx)
		if err != nil {
			return broken, err
		}
		if !kept {
			broken = append(broken, promise.what)
		}
	}
	return broken, nil
}

// A promise is what a profile may say of a server, in words for an operator.
type promise struct {
	made bool
	what string
	try  func(context.Context) (bool, error)
}

// promises are those that a server can show, made or not.
func (x *sample) promises() []promise {
	not := func(try func(context.Context) (bool, error)) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			shown, err := try(ctx)
			return !shown, err
		}
	}
	p := x.profile
	return []promise{
		{p.ExclusivePut, "PutObject with If-None-Match", x.exclusivePut},
		{p.ConditionalPut, "PutObject with If-Match", x.conditionalPut},
		{p.ExclusiveComplete, "CompleteMultipartUpload with If-None-Match", x.exclusiveComplete},
		{p.ConditionalComplete, "CompleteMultipartUpload with If-Match", x.conditionalComplete},
		{p.ConditionalCopy, "CopyObject with If-Match", x.conditionalCopy},
		{p.MD5ETags, "ETags that are the MD5", x.md5ETags},
		{p.Checksums, "checksums in requests", x.checksums},
		{p.SortedListings, "sorted listings", x.sortedListings},
		{!p.SlashPrefixes, "listings of any prefix", x.anyPrefix},
		{!p.UnendedUploads, "uploads that end when they are completed", not(x.unendedUploads)},
		{!p.UntoldETags, "the ETag in the response to CompleteMultipartUpload", not(x.untoldETags)},
		{p.PartCopy, "UploadPartCopy", x.partCopy},
		{!p.UncheckedSources, "x-amz-copy-source-if-match of an object that was stored by parts",
			not(x.uncheckedSources)},
		{p.PartLimit == 0, "10,000 parts", not(x.fewParts)},
		{p.ConditionalDelete, "DeleteObject with If-Match", x.conditionalDelete},
		{p.ConditionalBatchDelete, "DeleteObjects with ETags", x.conditionalBatchDelete},
		{p.BatchDelete, "DeleteObjects", x.batchDelete},
	}
}

// kept has a server show whether it does what it should. A request that is denied, or fails in the server, shows
// nothing. The error is one of the network.
func (p promise) kept(ctx context.Context) (bool, error) {
	kept, err := p.try(ctx)
	status := s3error.Status(err)
	shown := status != http.StatusForbidden && status < http.StatusInternalServerError
	return status != http.StatusNotImplemented && (kept || !shown), unanswered(err)
}

// unanswered returns an error without an answer of S3.
func unanswered(err error) error {
	if s3error.Status(err) != 0 {
		return nil
	}
	return err
}

func (x *sample) conditionalCopy(ctx context.Context) (bool, error) {
	copied := x.other("-copy")
	if err := copied.putAgain(ctx); err != nil {
		return false, err
	}
	replace := func(etag string) func() error {
		return func() error { return copied.copyFrom(ctx, x.key, &s3.CopyObjectInput{IfMatch: x.ifMatch(etag)}) }
	}
	return x.refusesWrong(replace(wrongETag), replace(copied.etag))
}

// md5ETags tells whether the ETag of an object that is not encrypted by KMS is the MD5 of its bytes.
func (x *sample) md5ETags(ctx context.Context) (bool, error) {
	put, err := x.put(ctx, &s3.PutObjectInput{})
	if err != nil {
		return false, err
	}
	return isMD5(x.etag) || strings.HasPrefix(
		string(put.ServerSideEncryption), string(types.ServerSideEncryptionAwsKms)), nil
}

// isMD5 tells whether an ETag is the MD5 of the object.
func isMD5(etag string) bool {
	sum := md5.Sum([]byte(content))
	return strings.Trim(etag, `"`) == hex.EncodeToString(sum[:])
}

// checksums tells whether the server refuses a wrong checksum, and keeps the right one.
func (x *sample) checksums(ctx context.Context) (bool, error) {
	if _, err := x.put(ctx, &s3.PutObjectInput{ChecksumCRC32C: aws.String("AAAAAA==")}); err == nil {
		return false, nil
	} else if unanswered(err) != nil {
		return false, err
	}
	crc := crc32.Checksum([]byte(content), crc32.MakeTable(crc32.Castagnoli))
	sum := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc))
	if _, err := x.put(ctx, &s3.PutObjectInput{ChecksumCRC32C: &sum}); err != nil {
		return false, err
	}
	out, err := x.HeadObject(
		ctx, &s3.HeadObjectInput{Bucket: &x.bucket, Key: &x.key, ChecksumMode: types.ChecksumModeEnabled})
	return err == nil && aws.ToString(out.ChecksumCRC32C) == sum, err
}

// sortedListings tells whether a listing has keys in the order of their bytes, whatever the order in which they were
// stored.
func (x *sample) sortedListings(ctx context.Context) (bool, error) {
	for _, suffix := range []string{"-z", "-é", "-a/b", "-a.b", "-B", "-b"} {
		if err := x.other(suffix).putAgain(ctx); err != nil {
			return false, err
		}
	}
	listed, err := x.list(ctx, x.key+"-")
	if err != nil {
		return false, err
	}
	return slices.IsSortedFunc(listed, func(a, b types.Object) int {
		return strings.Compare(aws.ToString(a.Key), aws.ToString(b.Key))
	}), nil
}

// anyPrefix tells whether a listing takes a prefix that does not end in a slash.
func (x *sample) anyPrefix(ctx context.Context) (bool, error) {
	if err := x.putAgain(ctx); err != nil {
		return false, err
	}
	listed, err := x.list(ctx, x.key[:len(x.key)-1])
	return len(listed) > 0, err
}
