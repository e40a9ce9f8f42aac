package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
)

// The defaults of the SDK's transfer manager.
const (
	rawPart        = 8 << 20
	rawThreshold   = 16 << 20 // largest file in a single request
	rawConcurrency = 5
)

// rawS3 accesses the bucket without an FTP server. All sessions share one client of the AWS SDK with default
// settings.
type rawS3 struct {
	client  *s3.Client
	bucket  string
	content content
	whole   bool // download in a single request, which is fastest if S3 is near
}

func (r *rawS3) open(context.Context) (session, error) { return rawSession{r}, nil }

type rawSession struct{ *rawS3 }

func (rawSession) close() {}

func (r rawSession) store(ctx context.Context, name string, size int64) error {
	if size <= rawThreshold {
		_, err := r.client.PutObject(
			ctx, &s3.PutObjectInput{Bucket: &r.bucket, Key: &name, Body: bytes.NewReader(r.content.at(0, size))})
		return err
	}
	created, err := r.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &r.bucket, Key: &name, ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
	})
	if err != nil {
		return err
	}
	parts := make([]types.CompletedPart, (size+rawPart-1)/rawPart)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(rawConcurrency)
	for i := range parts {
		offset := int64(i) * rawPart
		group.Go(func() error {
			number := aws.Int32(int32(i + 1))
			out, err := r.client.UploadPart(groupCtx, &s3.UploadPartInput{
				Bucket: &r.bucket, Key: &name, UploadId: created.UploadId, PartNumber: number,
				Body:              bytes.NewReader(r.content.at(offset, min(rawPart, size-offset))),
				ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
			})
			if err == nil {
				parts[i] = types.CompletedPart{ETag: out.ETag, PartNumber: number, ChecksumCRC32: out.ChecksumCRC32}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, err = r.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &r.bucket, Key: &name, UploadId: created.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	return err
}

func (r rawSession) fetch(ctx context.Context, name string, size int64) error {
	if size <= rawThreshold || r.whole {
		return r.get(ctx, name, nil, 0, size)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(rawConcurrency)
	for from := int64(0); from < size; from += rawPart {
		to := min(from+rawPart, size)
		group.Go(func() error {
			return r.get(groupCtx, name, aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1)), from, to-from)
		})
	}
	return group.Wait()
}

// get fetches and checks a range of a file, or the whole file if byteRange is nil.
func (r rawSession) get(ctx context.Context, name string, byteRange *string, offset, length int64) error {
	out, err := r.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &r.bucket, Key: &name, Range: byteRange})
	if err != nil {
		return err
	}
	defer out.Body.Close()
	return r.content.check(out.Body, offset, length)
}

func (r rawSession) list(ctx context.Context, dir string) (entries int, first time.Duration, err error) {
	begin := time.Now()
	pages := s3.NewListObjectsV2Paginator(r.client, &s3.ListObjectsV2Input{
		Bucket: &r.bucket, Prefix: aws.String(dir + "/"), Delimiter: aws.String("/"),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, 0, err
		}
		if first == 0 {
			first = time.Since(begin)
		}
		entries += len(page.Contents)
	}
	return entries, first, nil
}
