package s3api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// An Upload is an open multipart upload.
type Upload struct {
	Key, ID string

	// Checksum is the algorithm of the checksum that is sent with each part; empty for none.
	Checksum types.ChecksumAlgorithm

	// Name is the random name in the metadata of the object that the upload will create, with which HeadObject can
	// identify it.
	Name string
}

// A Part is an uploaded part that S3 has confirmed.
type Part struct {
	Number                   int32
	Size                     int64 // in bytes
	ETag                     string
	CRC32, CRC32C, CRC64NVME *string // base64-encoded; nil if the part has none
}

func (p *Part) completed() types.CompletedPart {
	return types.CompletedPart{
		PartNumber: &p.Number, ETag: &p.ETag, ChecksumCRC32: p.CRC32, ChecksumCRC32C: p.CRC32C,
		ChecksumCRC64NVME: p.CRC64NVME,
	}
}

// PartChecksums configures which checksums are sent with the parts of an upload.
type PartChecksums struct {
	Uploaded   bool // all parts are uploaded, not copied; they get a CRC-32C unless another algorithm is chosen
	Configured bool // an algorithm was configured
}

// CreateUpload begins a multipart upload of an object with attributes. name identifies the upload (see [Upload]); if it
// is empty, CreateUpload chooses one. If the error is EAGAIN, S3 may have created an upload that has no parts.
func (b *Bucket) CreateUpload(
	ctx context.Context, key, name string, a *s3object.Attributes, sums PartChecksums,
) (Upload, error) {
	name = cmp.Or(name, newName())
	in := &s3.CreateMultipartUploadInput{Bucket: &b.Name, Key: &key}
	a.ApplyToUpload(in)
	in.Metadata = withName(in.Metadata, name)
	if sums.Uploaded && in.ChecksumAlgorithm == "" {
		in.ChecksumAlgorithm = s3object.Algorithm
	}
	out, err := repeat(ctx, headTimeout, true, func(ctx context.Context) (*s3.CreateMultipartUploadOutput, error) {
		begin := time.Now()
		out, err := call(ctx, b, b.client.CreateMultipartUpload, in, func(o *s3.Options) {
			if !b.Profile.Checksums || !b.sendsChecksums(o) && !sums.Configured {
				in.ChecksumAlgorithm, in.ChecksumType = "", ""
				withoutChecksum(o)
			}
		})
		if err == nil && out.UploadId == nil {
			err = s3error.ErrNoResult
		}
		if err == nil {
			b.stats.Observe(time.Now(), time.Since(begin))
		}
		return out, err
	})
	if err != nil {
		return Upload{}, err
	}
	return Upload{Key: key, ID: *out.UploadId, Checksum: in.ChecksumAlgorithm, Name: in.Metadata[s3object.WriteKey]},
		nil
}

// UploadPart uploads a part. crc32c is the base64-encoded checksum of its body.
func (b *Bucket) UploadPart(
	ctx context.Context, u Upload, number int32, body io.ReadSeeker, crc32c *string,
) (Part, error) {
	var (
		sum  *string
		size int64
	)
	out, err := repeat(ctx, partTimeout, true, func(ctx context.Context) (*s3.UploadPartOutput, error) {
		content, err := newSentBody(ctx, body)
		if err != nil {
			return nil, err
		}
		size = content.Size()
		in := &s3.UploadPartInput{Bucket: &b.Name, Key: &u.Key, UploadId: &u.ID, PartNumber: &number, Body: content}
		checksum := withMD5
		switch {
		case u.Checksum == "" || !b.Profile.Checksums:
		case u.Checksum == s3object.Algorithm:
			in.ChecksumCRC32C = crc32c
			checksum = unsigned
		default:
			in.ChecksumAlgorithm = u.Checksum // computed by the SDK
			checksum = withoutChecksum
		}
		out, err := call(ctx, b, b.client.UploadPart, in, checksum)
		if err == nil && !hasETag(out.ETag) {
			err = s3error.ErrNoETag
		}
		if err != nil {
			_, _ = body.Seek(0, io.SeekStart) // rewind, because the part was not sent
		}
		sum = in.ChecksumCRC32C
		return out, err
	})
	if err != nil {
		return Part{Number: number}, err
	}
	return Part{Number: number, Size: size, ETag: *out.ETag, CRC32C: sum, CRC32: out.ChecksumCRC32,
		CRC64NVME: out.ChecksumCRC64NVME}, nil
}

// CopiesParts reports whether the server can copy parts of this key into an upload.
func (b *Bucket) CopiesParts(key string) bool {
	return b.Profile.PartCopy && (!b.Profile.MisreadPartSources || !strings.Contains(key, "%"))
}

// CopyPart creates a part from the bytes [from, to) of a version.
func (b *Bucket) CopyPart(ctx context.Context, u Upload, number int32, v Version, from, to int64) (Part, error) {
	in := &s3.UploadPartCopyInput{
		Bucket: &b.Name, Key: &u.Key, UploadId: &u.ID, PartNumber: &number,
		CopySource: v.copySource(), CopySourceIfMatch: b.sourceIfMatch(v),
		CopySourceIfUnmodifiedSince: b.sourceUnmodifiedSince(v),
	}
	if to-from < v.Size { // S3 copies no range of an object smaller than 5 MiB
		in.CopySourceRange = aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1))
	}
	out, err := repeat(
		ctx, copyTimeout(to-from, partTimeout), true, func(ctx context.Context) (*s3.UploadPartCopyOutput, error) {
			out, err := call(ctx, b, b.client.UploadPartCopy, in)
			if err == nil && (out.CopyPartResult == nil || !hasETag(out.CopyPartResult.ETag)) {
				err = s3error.ErrNoResult
			}
			return out, err
		})
	if err != nil {
		return Part{Number: number}, err
	}
	return Part{Number: number, Size: to - from, ETag: *out.CopyPartResult.ETag}, nil
}

// CompleteUpload creates the object of an upload, if the condition holds. owns reports whether the upload still belongs
// to this session, so that no other session can have completed it.
func (b *Bucket) CompleteUpload(
	ctx context.Context, u Upload, parts []*Part, c Condition, owns func(context.Context) bool,
) (Result, error) {
	all := make([]types.CompletedPart, len(parts))
	size := int64(0)
	for i, p := range parts {
		all[i] = p.completed()
		size += p.Size
	}
	made, err := b.perform(ctx, conditionalWrite{
		key: u.Key, name: u.Name, condition: c, supported: b.Profile.HasConditionalComplete(c.Absent),
		timeout: copyTimeout(size, partTimeout), long: true,
		send: func(ctx context.Context, c Condition) (Result, error) {
			out, err := call(ctx, b, b.client.CompleteMultipartUpload, &s3.CompleteMultipartUploadInput{
				Bucket: &b.Name, Key: &u.Key, UploadId: &u.ID, IfMatch: c.ifMatch(&b.Profile),
				IfNoneMatch:     c.ifNoneMatch(),
				MultipartUpload: &types.CompletedMultipartUpload{Parts: all},
			})
			switch {
			case err != nil:
				return Result{}, err
			case hasETag(out.ETag) && b.Profile.FalseSuccess && out.ChecksumType == "" && u.Name != "" &&
				b.headCompleted(ctx, u).Name == "":
				// an equal ETag proves nothing: another client may have stored the same bytes
				return Result{}, s3error.ErrNoResult
			case hasETag(out.ETag):
			case isFromS3(out.ResultMetadata) && aws.ToString(out.Key) == u.Key:
				return b.headCompleted(ctx, u), nil
			default:
				return Result{}, s3error.ErrNoResult
			}
			made := newResult(
				*out.ETag, out.ResultMetadata, out.ChecksumCRC32C, out.ChecksumCRC64NVME, out.ChecksumCRC32,
				out.ChecksumSHA256)
			made.Name = u.Name
			return made, nil
		},
		pending: func(ctx context.Context) bool { return !b.Profile.PersistentUploads && b.isOpen(ctx, u) },
		owns:    owns,
	})
	return made, c.replacedIfGone(err)
}

// isFromS3 reports whether a response has a request ID. Responses from proxies have none.
func isFromS3(response middleware.Metadata) bool {
	id, _ := awsmiddleware.GetRequestIDMetadata(response)
	return id != ""
}

// headCompleted returns the result of an upload that S3 has completed without returning an ETag, as Ceph does. The
// result is empty if another client replaced the object since.
func (b *Bucket) headCompleted(ctx context.Context, u Upload) Result {
	object, err := b.headAfterWrite(ctx, u.Key)
	if err != nil || !isNamed(object, u.Name) {
		return Result{}
	}
	return Result{ETag: aws.ToString(object.ETag), Name: u.Name}
}

// isOpen reports whether S3 still has a multipart upload. S3 completes an upload only once, so an open upload has not
// created an object.
func (b *Bucket) isOpen(ctx context.Context, u Upload) bool {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), headAfterWriteTimeout)
	defer done()
	_, err := b.ListParts(ctx, u, func(Part) bool { return false })
	return err == nil
}

// IsCompleted reports whether the object of a key may have been created by this upload: it has the name of the upload,
// or its metadata have no room for a name.
func (b *Bucket) IsCompleted(ctx context.Context, u Upload) (bool, error) {
	object, err := b.headWithChecksums(ctx, u.Key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	_, hasRoom := withName(object.Metadata, newName())[s3object.WriteKey]
	return isNamed(object, u.Name) || object.Metadata[s3object.WriteKey] == "" && !hasRoom, nil
}

// AbortUpload removes a multipart upload and its parts. A missing upload is not an error.
func (b *Bucket) AbortUpload(ctx context.Context, u Upload) error {
	_, err := repeat(ctx, silenceTimeout, false, func(ctx context.Context) (*s3.AbortMultipartUploadOutput, error) {
		return call(ctx, b, b.client.AbortMultipartUpload,
			&s3.AbortMultipartUploadInput{Bucket: &b.Name, Key: &u.Key, UploadId: &u.ID})
	})
	if s3error.IsNoSuchUpload(err) {
		return nil
	}
	return err
}

// ListParts calls take for the parts of an upload in order, until take returns false. It returns the checksum algorithm
// of the upload.
func (b *Bucket) ListParts(ctx context.Context, u Upload, take func(Part) bool) (types.ChecksumAlgorithm, error) {
	in := &s3.ListPartsInput{Bucket: &b.Name, Key: &u.Key, UploadId: &u.ID}
	for {
		out, err := repeat(ctx, listTimeout, false, func(ctx context.Context) (*s3.ListPartsOutput, error) {
			return call(ctx, b, b.client.ListParts, in)
		})
		if err != nil {
			return "", err
		}
		for _, p := range out.Parts {
			if p.ETag == nil || p.Size == nil {
				return "", s3error.FromSDK(s3error.ErrNoResult)
			}
			listed := Part{
				Number: aws.ToInt32(p.PartNumber), Size: *p.Size, ETag: *p.ETag,
				CRC32: p.ChecksumCRC32, CRC32C: p.ChecksumCRC32C, CRC64NVME: p.ChecksumCRC64NVME,
			}
			if !take(listed) {
				return out.ChecksumAlgorithm, nil
			}
		}
		if !aws.ToBool(out.IsTruncated) || len(out.Parts) == 0 {
			return out.ChecksumAlgorithm, nil
		}
		in.PartNumberMarker = out.NextPartNumberMarker
	}
}
