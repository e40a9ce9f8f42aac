package s3api

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/s3errors"

	"github.com/babelftp/babelftp/driver/internal/checksums"
)

const (
	// abortAttempts bounds how often AbortUpload tries. Then the upload is left to a sweep or to the bucket's lifecycle rules. abortDelay is the
	// pause after the first attempt. Each further pause is twice as long.
	abortAttempts = 4
	abortDelay    = 200 * time.Millisecond
)

// An Upload is a multipart upload that is open.
type Upload struct {
	Key, ID string

	// Checksum is the algorithm of the checksum that each part comes with, empty for none.
	Checksum types.ChecksumAlgorithm
}

// A Part is a part of an upload that S3 has confirmed.
type Part struct {
	Number                   int32
	ETag                     string
	CRC32, CRC32C, CRC64NVME *string // in base64, nil where it has none
}

func (p *Part) completed() types.CompletedPart {
	return types.CompletedPart{
		PartNumber: &p.Number, ETag: &p.ETag, ChecksumCRC32: p.CRC32, ChecksumCRC32C: p.CRC32C, ChecksumCRC64NVME: p.CRC64NVME,
	}
}

// PartChecksums says which checksums the parts of an upload come with.
type PartChecksums struct {
	Uploaded   bool // its parts are uploaded, and none is copied: they have a CRC-32C where nothing else was chosen
	Configured bool // an algorithm was chosen
}

// CreateUpload begins a multipart upload of an object with attributes.
func (b *Bucket) CreateUpload(ctx context.Context, key string, a *attributes.Attributes, sums PartChecksums) (Upload, error) {
	in := &s3.CreateMultipartUploadInput{Bucket: &b.Name, Key: &key}
	a.ApplyToUpload(in)
	if sums.Uploaded && in.ChecksumAlgorithm == "" {
		in.ChecksumAlgorithm = checksums.Algorithm
	}
	begin := time.Now()
	out, err := b.client.CreateMultipartUpload(ctx, in, repeatable, func(o *s3.Options) {
		if !b.sendsChecksums(o) && !sums.Configured {
			in.ChecksumAlgorithm = ""
			withoutChecksum(o)
		}
	})
	if err == nil && out.UploadId == nil {
		err = s3errors.ErrNoResult
	}
	if err != nil {
		return Upload{}, s3errors.FromSDK(err)
	}
	b.stats.Observe(time.Now(), time.Since(begin))
	return Upload{Key: key, ID: *out.UploadId, Checksum: in.ChecksumAlgorithm}, nil
}

// UploadPart uploads a part, whose CRC-32C is in base64.
func (b *Bucket) UploadPart(ctx context.Context, u Upload, number int32, body io.ReadSeeker, crc32c *string) (Part, error) {
	in := &s3.UploadPartInput{Bucket: &b.Name, Key: &u.Key, UploadId: &u.ID, PartNumber: &number, Body: body}
	opts := []func(*s3.Options){withoutChecksum, withoutExpectContinue}
	switch u.Checksum {
	case "":
	case checksums.Algorithm:
		in.ChecksumCRC32C = crc32c
		opts = []func(*s3.Options){unsigned, withoutExpectContinue}
	default:
		in.ChecksumAlgorithm = u.Checksum // the SDK computes it
	}
	out, err := b.client.UploadPart(ctx, in, opts...)
	if err == nil && out.ETag == nil {
		err = s3errors.ErrNoResult
	}
	if err != nil {
		return Part{Number: number}, s3errors.FromSDK(err)
	}
	return Part{
		Number: number, ETag: *out.ETag, CRC32C: in.ChecksumCRC32C, CRC32: out.ChecksumCRC32, CRC64NVME: out.ChecksumCRC64NVME,
	}, nil
}

// withoutExpectContinue keeps the SDK from sending "Expect: 100-continue" with each part, which costs a round trip. S3 has just accepted the
// upload.
func withoutExpectContinue(o *s3.Options) { o.ContinueHeaderThresholdBytes = -1 }

// CopyPart makes a part of the bytes [from, to) of a version.
func (b *Bucket) CopyPart(ctx context.Context, u Upload, number int32, v Version, from, to int64) (Part, error) {
	in := &s3.UploadPartCopyInput{
		Bucket: &b.Name, Key: &u.Key, UploadId: &u.ID, PartNumber: &number,
		CopySource: v.copySource(), CopySourceIfMatch: Condition{ETag: v.ETag}.ifMatch(),
	}
	if to-from < v.Size { // S3 copies no range of an object below 5 MiB
		in.CopySourceRange = aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1))
	}
	out, err := b.client.UploadPartCopy(ctx, in, repeatable)
	if err == nil && (out.CopyPartResult == nil || out.CopyPartResult.ETag == nil) {
		err = s3errors.ErrNoResult
	}
	if err != nil {
		return Part{Number: number}, s3errors.FromSDK(err)
	}
	return Part{Number: number, ETag: *out.CopyPartResult.ETag}, nil
}

// CompleteUpload makes an object of so many bytes visible, on a condition. seen is true if the answer was lost, and a
// look at the object has shown the ETag.
func (b *Bucket) CompleteUpload(ctx context.Context, u Upload, parts []*Part, size int64, c Condition) (made Stored, seen bool, err error) {
	if c, err = b.precondition(ctx, u.Key, c, b.Profile.ConditionalComplete); err != nil {
		return Stored{}, false, err
	}
	all := make([]types.CompletedPart, len(parts))
	for i, p := range parts {
		all[i] = p.completed()
	}
	var tries attempts // S3 dates the object from when the upload began
	out, err := b.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &b.Name, Key: &u.Key, UploadId: &u.ID, IfMatch: c.ifMatch(), IfNoneMatch: c.ifNoneMatch(),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: all},
	}, tries.countAttempts)
	switch {
	case err != nil:
	case out.ETag == nil:
		err = s3errors.ErrNoResult
	default:
		return stored(*out.ETag, out.ResultMetadata, out.ChecksumCRC32C, out.ChecksumCRC64NVME, out.ChecksumCRC32), false, nil
	}
	gone := tries.count > 1 && s3errors.IsNoSuchUpload(err)
	made.ETag, err = b.reconcile(ctx, u.Key, &tries, err, evidenceOfComplete(all, size, gone))
	return made, true, err
}

// AbortUpload removes a multipart upload and its parts. A missing upload is no error.
func (b *Bucket) AbortUpload(ctx context.Context, u Upload) error {
	delay := abortDelay
	for attempt := 1; ; attempt++ {
		_, err := b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &b.Name, Key: &u.Key, UploadId: &u.ID})
		if err == nil || s3errors.IsNoSuchUpload(err) {
			return nil
		}
		if attempt == abortAttempts || Sleep(ctx, delay) != nil {
			return s3errors.FromSDK(err)
		}
		delay *= 2
	}
}

// ListParts lists the parts of an upload in order, each with its size in bytes, until take returns false. It returns the algorithm of their
// checksums.
func (b *Bucket) ListParts(ctx context.Context, u Upload, take func(p Part, size int64) bool) (types.ChecksumAlgorithm, error) {
	in := &s3.ListPartsInput{Bucket: &b.Name, Key: &u.Key, UploadId: &u.ID}
	for {
		out, err := b.client.ListParts(ctx, in, repeatable)
		if err != nil {
			return "", s3errors.FromSDK(err)
		}
		for _, p := range out.Parts {
			if p.ETag == nil || p.Size == nil {
				return "", s3errors.FromSDK(s3errors.ErrNoResult)
			}
			listed := Part{
				Number: aws.ToInt32(p.PartNumber), ETag: *p.ETag,
				CRC32: p.ChecksumCRC32, CRC32C: p.ChecksumCRC32C, CRC64NVME: p.ChecksumCRC64NVME,
			}
			if !take(listed, *p.Size) {
				return out.ChecksumAlgorithm, nil
			}
		}
		if !aws.ToBool(out.IsTruncated) || len(out.Parts) == 0 {
			return out.ChecksumAlgorithm, nil
		}
		in.PartNumberMarker = out.NextPartNumberMarker
	}
}

// An OpenUpload is a multipart upload that S3 lists, and when it began.
type OpenUpload struct {
	ID        string
	Initiated time.Time
}

// OpenUploads lists the multipart uploads of a key, the first page.
func (b *Bucket) OpenUploads(ctx context.Context, key string) ([]OpenUpload, error) {
	out, err := b.client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: &b.Name, Prefix: &key}, repeatable)
	if err != nil {
		return nil, s3errors.FromSDK(err)
	}
	var uploads []OpenUpload
	for _, u := range out.Uploads {
		if aws.ToString(u.Key) == key {
			uploads = append(uploads, OpenUpload{ID: aws.ToString(u.UploadId), Initiated: aws.ToTime(u.Initiated)})
		}
	}
	return uploads, nil
}
