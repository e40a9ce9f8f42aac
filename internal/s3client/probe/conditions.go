package probe

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/s3error"
)

// Conditions stores an object below a prefix of keys, and tries to replace it, whole and by parts, on the condition that there is none. What it has stored
// it deletes, as far as it may. The error is [ErrReplaced], or one of S3 or of the network.
func Conditions(ctx context.Context, client *s3.Client, bucket, prefix string) error {
	key := newKey(prefix)
	versions, err := replace(ctx, client, bucket, key)
	discard(ctx, client, bucket, key, versions)
	return err
}

// discard deletes the versions of an object, as far as it may, also when ctx has ended. Where it may delete no versions, a delete marker hides them.
func discard(ctx context.Context, client *s3.Client, bucket, key string, versions []*string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	for _, version := range versions {
		if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key, VersionId: version}); err != nil && version != nil {
			_, _ = client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
			return
		}
	}
}

// ErrReplaced is that of a server which does not know If-None-Match.
var ErrReplaced = errors.New("S3 replaced an object although the request forbade it")

// replace returns the versions that it has stored, and ErrReplaced where one has replaced another.
func replace(ctx context.Context, client *s3.Client, bucket, key string) (versions []*string, err error) {
	put := func() error {
		out, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, IfNoneMatch: aws.String("*")})
		if err == nil {
			versions = append(versions, out.VersionId)
		}
		return err
	}
	if err := put(); err != nil {
		return nil, err
	}
	if err := refused(put()); err != nil {
		return versions, err
	}
	created, err := client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return versions, err
	}
	upload := &s3.AbortMultipartUploadInput{Bucket: &bucket, Key: &key, UploadId: created.UploadId}
	defer client.AbortMultipartUpload(context.WithoutCancel(ctx), upload) //nolint:errcheck // it is gone if it was completed
	part, err := client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &bucket, Key: &key, UploadId: created.UploadId, PartNumber: aws.Int32(1), Body: strings.NewReader("x"),
	})
	if err != nil {
		return versions, err
	}
	out, err := client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &bucket, Key: &key, UploadId: created.UploadId, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{ETag: part.ETag, PartNumber: aws.Int32(1)}}},
	})
	if err == nil {
		versions = append(versions, out.VersionId)
	}
	return versions, refused(err)
}

// refused wants a request to have failed because its condition does not hold.
func refused(err error) error {
	switch {
	case err == nil:
		return ErrReplaced
	case s3error.Status(err) == http.StatusPreconditionFailed:
		return nil
	}
	return err
}
