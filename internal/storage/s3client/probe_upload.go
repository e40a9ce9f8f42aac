package s3client

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
)

// upload begins multipart uploads: one at the key of users, and one that replaces the own object.
func (p *prober) upload(ctx context.Context) {
	b := p.bucket
	id, ok := p.begin(ctx, p.users, b.Objects)
	if !ok {
		for _, part := range parts(b.Objects) {
			p.begin(ctx, p.users, part)
		}
		return
	}
	if _, ok := p.uploadPart(ctx, p.users, id); !ok {
		return
	}
	if p.exists && b.Profile.PartCopy {
		try(ctx, p, p.client.UploadPartCopy, &s3.UploadPartCopyInput{
			Bucket: &b.Name, Key: &p.users, UploadId: id, PartNumber: aws.Int32(2),
			CopySource: aws.String(b.Name + "/" + escape(p.own)),
		})
	}
	if b.Resumable() {
		try(ctx, p, p.client.ListParts, &s3.ListPartsInput{Bucket: &b.Name, Key: &p.users, UploadId: id})
	}
	if p.exists {
		p.complete(ctx)
	}
}

// begin creates a multipart upload.
func (p *prober) begin(ctx context.Context, key string, o driver.Objects) (id *string, ok bool) {
	in := &s3.CreateMultipartUploadInput{Bucket: &p.bucket.Name, Key: &key}
	o.Checksum = "" // parts would need it
	a := o.OfFile("")
	a.ApplyToUpload(in)
	out, ok := try(ctx, p, p.client.CreateMultipartUpload, in)
	if !ok {
		return nil, false
	}
	return out.UploadId, true
}

func (p *prober) uploadPart(ctx context.Context, key string, id *string) (*s3.UploadPartOutput, bool) {
	return try(ctx, p, p.client.UploadPart, &s3.UploadPartInput{
		Bucket: &p.bucket.Name, Key: &key, UploadId: id, PartNumber: aws.Int32(1),
		Body: strings.NewReader(content),
	})
}

// complete replaces the own object by an upload of one part. First it forbids that.
func (p *prober) complete(ctx context.Context) {
	id, ok := p.begin(ctx, p.own, p.bucket.Objects)
	if !ok {
		return
	}
	part, ok := p.uploadPart(ctx, p.own, id)
	if !ok {
		return
	}
	in := s3.CompleteMultipartUploadInput{Bucket: &p.bucket.Name, Key: &p.own, UploadId: id,
		MultipartUpload: &types.CompletedMultipartUpload{
			Parts: []types.CompletedPart{{ETag: part.ETag, PartNumber: aws.Int32(1)}},
		}}
	if p.bucket.Profile.ConditionalComplete {
		forbidden := in
		forbidden.IfNoneMatch = aws.String("*")
		if out, ok := try(ctx, p, p.client.CompleteMultipartUpload, &forbidden, "PreconditionFailed"); ok &&
			out != nil {
			p.unconditional("If-None-Match of CompleteMultipartUpload")
			return
		}
	}
	if _, ok := try(ctx, p, p.client.CompleteMultipartUpload, &in); ok {
		p.noteTags(ctx, p.own, "an upload by parts")
	}
}
