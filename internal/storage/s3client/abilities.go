package s3client

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/profile"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// Experiments on requests without conditions.

// md5ETags reports whether the ETag of the object is the MD5 of its bytes. If KMS encrypts the object, the experiment
// proves nothing, and the value of the profile stays.
func (x *sample) md5ETags(ctx context.Context) (bool, error) {
	put, err := x.put(ctx, &s3.PutObjectInput{})
	if err != nil {
		return false, err
	}
	if strings.HasPrefix(string(put.ServerSideEncryption), string(types.ServerSideEncryptionAwsKms)) {
		return x.profile.MD5ETags, nil
	}
	sum := md5.Sum([]byte(content))
	return strings.Trim(x.etag, `"`) == hex.EncodeToString(sum[:]), nil
}

// checksums reports whether the server rejects a wrong checksum and stores a correct one.
func (x *sample) checksums(ctx context.Context) (bool, error) {
	if _, err := x.put(ctx, &s3.PutObjectInput{ChecksumCRC32C: aws.String("AAAAAA==")}); err == nil {
		return false, nil
	} else if networkError(err) != nil {
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

// sortedListings reports whether listings are sorted by the bytes of the keys, in whatever order the objects were
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

// slashPrefixes reports whether a listing ignores or rejects a prefix that does not end with a slash.
func (x *sample) slashPrefixes(ctx context.Context) (bool, error) {
	if err := x.putAgain(ctx); err != nil {
		return true, err
	}
	listed, err := x.list(ctx, x.key[:len(x.key)-1])
	return len(listed) == 0, err
}

// persistentUploads reports whether an upload still exists after it was completed.
func (x *sample) persistentUploads(ctx context.Context) (bool, error) {
	completed := &s3.CompleteMultipartUploadInput{}
	if _, err := x.complete(ctx, completed); err != nil {
		return false, err
	}
	_, err := x.ListParts(ctx, &s3.ListPartsInput{Bucket: &x.bucket, Key: &x.key, UploadId: completed.UploadId})
	return err == nil, err
}

// completesWithoutETag reports whether the response to CompleteMultipartUpload has no ETag.
func (x *sample) completesWithoutETag(ctx context.Context) (bool, error) {
	out, err := x.complete(ctx, &s3.CompleteMultipartUploadInput{})
	return err == nil && aws.ToString(out.ETag) == "", err
}

func (x *sample) partCopy(ctx context.Context) (bool, error) { return x.copyPart(ctx, nil) }

// refusesManyParts reports whether the server refuses part 1,001.
func (x *sample) refusesManyParts(ctx context.Context) (bool, error) {
	id, err := x.begin(ctx)
	if err != nil {
		return false, err
	}
	_, err = x.part(ctx, id, profile.FewParts+1)
	return s3error.IsBadRequest(err), err
}

func (x *sample) batchDelete(ctx context.Context) (bool, error) {
	if err := x.putAgain(ctx); err != nil {
		return false, err
	}
	return x.deleteAll(ctx, nil)
}
