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

// An Upload is a multipart upload that is open.
type Upload struct {
	Key, ID string

	// Checksum is the algorithm of the checksum that each part comes with, empty for none.
	Checksum types.ChecksumAlgorithm

	// Name is in the metadata of the object that the upload makes, so that a look can tell it from others.
	Name string
}

// A Part is a part of an upload that S3 has confirmed.
type Part struct {
	Number                   int32
	Size                     int64 // bytes
	ETag                     string
	CRC32, CRC32C, CRC64NVME *string // in base64, nil where it has none
}

func (p *Part) completed() types.CompletedPart {
	return types.CompletedPart{
		PartNumber: &p.Number, ETag: &p.ETag, ChecksumCRC32: p.CRC32, ChecksumCRC32C: p.CRC32C,
		ChecksumCRC64NVME: p.CRC64NVME,
	}
}

// PartChecksums says which checksums the parts of an upload come with.
type PartChecksums struct {
	Uploaded   bool // its parts are uploaded, and none is copied: they have a CRC-32C where nothing else was chosen
	Configured bool // an algorithm was chosen
}

// CreateUpload begins a multipart upload of an object with attributes. The name is that of [Upload]; empty stands for
// a new one. After an error that is EAGAIN there may be an upload without parts.
func (b *Bucket) CreateUpload(
	ctx context.Context, key, name string, a *s3object.Attributes, sums PartChecksums,
) (Upload, error) {
	name = cmp.Or(name, newName())
	in := &s3.CreateMultipartUploadInput{Bucket: &b.Name, Key: &key}
	a.ApplyToUpload(in)
	in.Metadata = named(in.Metadata, name)
	if sums.Uploaded && in.ChecksumAlgorithm == "" {
		in.ChecksumAlgorithm = s3object.Algorithm
	}
	out, err := ask(ctx, lookTimeout, true, func(ctx context.Context) (*s3.CreateMultipartUploadOutput, error) {
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

// UploadPart uploads a part, whose CRC-32C is in base64.
func (b *Bucket) UploadPart(
	ctx context.Context, u Upload, number int32, body io.ReadSeeker, crc32c *string,
) (Part, error) {
	var (
		sum  *string
		size int64
	)
	out, err := ask(ctx, partTimeout, true, func(ctx context.Context) (*s3.UploadPartOutput, error) {
		content, err := sent(ctx, body)
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
			in.ChecksumAlgorithm = u.Checksum // the SDK computes it
			checksum = withoutChecksum
		}
		out, err := call(ctx, b, b.client.UploadPart, in, checksum)
		if err == nil && !hasETag(out.ETag) {
			err = s3error.ErrNoETag
		}
		if err != nil {
			_, _ = body.Seek(0, io.SeekStart) // it is not sent
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

// CopiesParts reports whether the server can copy parts of the object of a key into an upload.
func (b *Bucket) CopiesParts(key string) bool {
	return b.Profile.PartCopy && (!b.Profile.MisreadPartSources || !strings.Contains(key, "%"))
}

// CopyPart makes a part of the bytes [from, to) of a version.
func (b *Bucket) CopyPart(ctx context.Context, u Upload, number int32, v Version, from, to int64) (Part, error) {
	in := &s3.UploadPartCopyInput{
		Bucket: &b.Name, Key: &u.Key, UploadId: &u.ID, PartNumber: &number,
		CopySource: v.copySource(), CopySourceIfMatch: b.sourceIfMatch(v),
		CopySourceIfUnmodifiedSince: b.sourceUnmodifiedSince(v),
	}
	if to-from < v.Size { // S3 copies no range of an object below 5 MiB
		in.CopySourceRange = aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1))
	}
	out, err := ask(
		ctx, copying(to-from, partTimeout), true, func(ctx context.Context) (*s3.UploadPartCopyOutput, error) {
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

// CompleteUpload makes an object visible, on a condition. owns tells whether no other session has completed the upload.
func (b *Bucket) CompleteUpload(
	ctx context.Context, u Upload, parts []*Part, c Condition, owns func(context.Context) bool,
) (Stored, error) {
	all := make([]types.CompletedPart, len(parts))
	size := int64(0)
	for i, p := range parts {
		all[i] = p.completed()
		size += p.Size
	}
	made, err := b.perform(ctx, change{
		key: u.Key, name: u.Name, condition: c, supported: b.Profile.CompletesOn(c.Absent),
		timeout: copying(size, partTimeout), long: true,
		send: func(ctx context.Context, c Condition) (Stored, error) {
			out, err := call(ctx, b, b.client.CompleteMultipartUpload, &s3.CompleteMultipartUploadInput{
				Bucket: &b.Name, Key: &u.Key, UploadId: &u.ID, IfMatch: c.ifMatch(&b.Profile),
				IfNoneMatch:     c.ifNoneMatch(),
				MultipartUpload: &types.CompletedMultipartUpload{Parts: all},
			})
			switch {
			case err != nil:
				return Stored{}, err
			case hasETag(out.ETag) && b.Profile.UnstoredAnswers && out.ChecksumType == "" && u.Name != "" &&
				b.lookAtCompleted(ctx, u).Name == "":
				// an equal ETag proves nothing: another client may have stored the same bytes
				return Stored{}, s3error.ErrNoResult
			case hasETag(out.ETag):
			case isOfS3(out.ResultMetadata) && aws.ToString(out.Key) == u.Key:
				return b.lookAtCompleted(ctx, u), nil
			default:
				return Stored{}, s3error.ErrNoResult
			}
			made := stored(*out.ETag, out.ResultMetadata, out.ChecksumCRC32C, out.ChecksumCRC64NVME, out.ChecksumCRC32)
			made.Name = u.Name
			return made, nil
		},
		pending: func(ctx context.Context) bool { return !b.Profile.UnendedUploads && b.isOpen(ctx, u) },
		owns:    owns,
	})
	return made, c.replacedIfGone(err)
}

// isOfS3 tells whether an answer has the ID of a request. Those of a proxy have none.
func isOfS3(answer middleware.Metadata) bool {
	id, _ := awsmiddleware.GetRequestIDMetadata(answer)
	return id != ""
}

// lookAtCompleted looks for the ETag of an upload that S3 has completed without telling it, as Ceph does. It finds
// none if another client has replaced the object since.
func (b *Bucket) lookAtCompleted(ctx context.Context, u Upload) Stored {
	object, err := b.lookAfter(ctx, u.Key)
	if err != nil || !isNamed(object, u.Name) {
		return Stored{}
	}
	return Stored{ETag: aws.ToString(object.ETag), Name: u.Name}
}

// isOpen tells whether S3 still has a multipart upload. S3 completes an upload once. So one that is open has made no
// object.
func (b *Bucket) isOpen(ctx context.Context, u Upload) bool {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), lookAfterTimeout)
	defer done()
	_, err := b.ListParts(ctx, u, func(Part) bool { return false })
	return err == nil
}

// IsCompleted tells whether the object of a key may be the one that an upload makes: it has the name of the upload, or
// no room for a name.
func (b *Bucket) IsCompleted(ctx context.Context, u Upload) (bool, error) {
	object, err := b.look(ctx, u.Key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	_, hasRoom := named(object.Metadata, newName())[s3object.WriteKey]
	return isNamed(object, u.Name) || object.Metadata[s3object.WriteKey] == "" && !hasRoom, nil
}

// AbortUpload removes a multipart upload and its parts. A missing upload is no error.
func (b *Bucket) AbortUpload(ctx context.Context, u Upload) error {
	_, err := ask(ctx, silenceTimeout, false, func(ctx context.Context) (*s3.AbortMultipartUploadOutput, error) {
		return call(ctx, b, b.client.AbortMultipartUpload,
			&s3.AbortMultipartUploadInput{Bucket: &b.Name, Key: &u.Key, UploadId: &u.ID})
	})
	if s3error.IsNoSuchUpload(err) {
		return nil
	}
	return err
}

// ListParts lists the parts of an upload in order, until take returns false. It returns the algorithm of their
// checksums.
func (b *Bucket) ListParts(ctx context.Context, u Upload, take func(Part) bool) (types.ChecksumAlgorithm, error) {
	in := &s3.ListPartsInput{Bucket: &b.Name, Key: &u.Key, UploadId: &u.ID}
	for {
		out, err := ask(ctx, listTimeout, false, func(ctx context.Context) (*s3.ListPartsOutput, error) {
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
