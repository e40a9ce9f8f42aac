package s3client

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
)

// storeObject stores an object with the attributes of the tenant, reads it and copies it.
func (p *prober) storeObject(ctx context.Context) {
	b, o := p.bucket, p.bucket.Objects
	if !b.Use().Write {
		o = driver.Objects{} // events are stored without attributes
	}
	before := len(p.denied)
	if !p.put(ctx, o) {
		for _, part := range parts(o) {
			p.put(ctx, part)
		}
	}
	if !p.exists {
		if p.refusesCustomerKeys(ctx) {
			p.denied, p.ended = p.denied[:before], true
		}
		return
	}
	p.get(ctx, p.own, nil)
	if p.needsLookup() { // distinguishes a denied lookup from a denied read, because this key may be read
		p.get(ctx, p.own+"-missing", nil, "NoSuchKey")
	}
	if len(o.Tags) > 0 {
		try(ctx, p, p.client.GetObjectTagging, &s3.GetObjectTaggingInput{Bucket: &b.Name, Key: &p.own})
	}
	if !b.Use().Write {
		return
	}
	p.storeByRules(ctx)
	copied := p.own + "-copy"
	in := &s3.CopyObjectInput{Bucket: &b.Name, Key: &copied, CopySource: copySource(b.Name, p.own)}
	a := o.ForFile("")
	a.ApplyToCopy(in)
	if _, ok := try(ctx, p, p.client.CopyObject, in); ok {
		p.noteTags(ctx, copied, "a copy with other attributes, as MFMT and some renames make it,")
	}
}

// refusesCustomerKeys reports a problem and returns true if S3 stores the object only without the SSE-C key. AWS does
// this for buckets that block SSE-C, which is the default for new buckets, and responds as if a permission were
// missing.
func (p *prober) refusesCustomerKeys(ctx context.Context) bool {
	if p.bucket.customerKey == nil {
		return false
	}
	if _, err := send(ctx, p, p.scratch.PutObject, p.object(driver.Objects{})); err != nil {
		return false
	}
	p.problem("S3 refuses encryption: customer (SSE-C) and stores the object without it: allow SSE-C for the bucket, " +
		"where AWS blocks it by default, or set encryption: s3 or kms")
	return true
}

// noteTags adds a note if an object lost the tags of the tenant. what describes how the object was stored.
func (p *prober) noteTags(ctx context.Context, key, what string) {
	if len(p.bucket.Objects.Tags) == 0 || p.bucket.Profile.TagRequests { // the driver adds them
		return
	}
	out, ok := try(ctx, p, p.client.GetObjectTagging, &s3.GetObjectTaggingInput{Bucket: &p.bucket.Name, Key: &key})
	if !ok || len(out.TagSet) > 0 {
		return
	}
	p.report.Notes = append(p.report.Notes, fmt.Sprintf("its S3 server loses objects.tags: %s has none", what))
}

// parts returns one object without attributes, and one object for each attribute that needs an action of its own.
func parts(o driver.Objects) []driver.Objects {
	all := []driver.Objects{{}}
	if o.ACL != "" {
		all = append(all, driver.Objects{ACL: o.ACL})
	}
	if len(o.Tags) > 0 {
		all = append(all, driver.Objects{Tags: o.Tags})
	}
	if o.KMSKeyID != "" {
		all = append(all, driver.Objects{Encryption: o.Encryption, KMSKeyID: o.KMSKeyID})
	}
	return all
}

// object returns the request that stores the probe's object.
func (p *prober) object(o driver.Objects) *s3.PutObjectInput {
	in := &s3.PutObjectInput{Bucket: &p.bucket.Name, Key: &p.own, Body: strings.NewReader(content)}
	a := o.ForFile("")
	a.ApplyToPut(in)
	return in
}

func (p *prober) put(ctx context.Context, o driver.Objects) bool {
	_, ok := try(ctx, p, p.client.PutObject, p.object(o))
	p.exists = p.exists || ok
	return ok
}

// upload starts two multipart uploads: one at the users' key, and one that overwrites the probe's object.
func (p *prober) upload(ctx context.Context) {
	b := p.bucket
	id, ok := p.begin(ctx, p.users, b.Objects)
	if !ok {
		for _, part := range parts(b.Objects) {
			p.begin(ctx, p.users, part)
		}
		return
	}
	// A proxy in front of S3 may limit the size of requests, so send a part of the full size.
	if _, ok := p.uploadPart(ctx, p.users, id, max(b.partSize, 1)); !ok {
		return
	}
	if p.exists && b.Profile.PartCopy {
		try(ctx, p, p.client.UploadPartCopy, &s3.UploadPartCopyInput{
			Bucket: &b.Name, Key: &p.users, UploadId: id, PartNumber: aws.Int32(2),
			CopySource: copySource(b.Name, p.own),
		})
	}
	if b.Resumable() {
		try(ctx, p, p.client.ListParts, &s3.ListPartsInput{Bucket: &b.Name, Key: &p.users, UploadId: id})
	}
	if p.exists {
		p.complete(ctx)
	}
}

// useQuarantine starts a multipart upload below the quarantine prefix, and aborts it. The server never reads or
// deletes there.
func (p *prober) useQuarantine(ctx context.Context) {
	key := p.quarantine + "babelftp-probe"
	in := &s3.AbortMultipartUploadInput{Bucket: &p.bucket.Name, Key: &key, UploadId: aws.String("none")}
	if _, ok := try(ctx, p, p.client.AbortMultipartUpload, in, "NoSuchUpload", "NoSuchKey"); !ok {
		return // the upload could not be removed
	}
	if in.UploadId, _ = p.begin(ctx, key, p.bucket.Objects); in.UploadId != nil {
		try(ctx, p, p.client.AbortMultipartUpload, in)
	}
}

// begin creates a multipart upload.
func (p *prober) begin(ctx context.Context, key string, o driver.Objects) (id *string, ok bool) {
	in := &s3.CreateMultipartUploadInput{Bucket: &p.bucket.Name, Key: &key}
	o.Checksum = "" // a checksum here would require one for each part
	a := o.ForFile("")
	a.ApplyToUpload(in)
	out, ok := try(ctx, p, p.client.CreateMultipartUpload, in)
	if !ok {
		return nil, false
	}
	return out.UploadId, true
}

// uploadPart uploads a first part of this size.
func (p *prober) uploadPart(ctx context.Context, key string, id *string, size int64) (*s3.UploadPartOutput, bool) {
	return try(ctx, p, p.client.UploadPart, &s3.UploadPartInput{
		Bucket: &p.bucket.Name, Key: &key, UploadId: id, PartNumber: aws.Int32(1),
		Body: io.NewSectionReader(zeros{}, 0, size),
	})
}

// zeros is an io.ReaderAt that returns zeros without end.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

// complete overwrites the object of the probe with a multipart upload of one part.
func (p *prober) complete(ctx context.Context) {
	id, ok := p.begin(ctx, p.own, p.bucket.Objects)
	if !ok {
		return
	}
	part, ok := p.uploadPart(ctx, p.own, id, 1)
	if !ok {
		return
	}
	if _, ok := try(ctx, p, p.client.CompleteMultipartUpload, &s3.CompleteMultipartUploadInput{
		Bucket: &p.bucket.Name, Key: &p.own, UploadId: id, MultipartUpload: onePart(part),
	}); ok {
		p.noteTags(ctx, p.own, "an upload by parts")
	}
}
