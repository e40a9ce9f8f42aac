package s3client

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
)

const (
	// reserved follows the prefix of a bucket in the keys of the server's own objects. No pathname of a user contains
	// this segment.
	reserved = driver.Reserved + "/"

	content   = "x"
	wrongETag = `"00000000000000000000000000000000"` // ETag of no object
)

// A sample is an object that experiments use. The scratch deletes it.
type sample struct {
	*scratch
	key     string
	etag    string          // ETag of the object, as the server sent it
	profile *driver.Profile // fields that the experiments set; also controls the format of ETags

	// fewParts is [driver.Profile.PartLimit] as a fact: the server does not accept 10,000 parts.
	fewParts bool
}

// newSample returns a sample below the prefix of a bucket, with an unused key. It adds If-None-Match to a profile that
// supports If-Match.
func newSample(s *scratch, prefix string, p *driver.Profile) *sample {
	p.ExclusivePut, p.ExclusiveComplete = p.HasConditionalPut(true), p.HasConditionalComplete(true)
	return &sample{scratch: s, key: prefix + reserved + "overwrite-" + strings.ToLower(rand.Text()), profile: p,
		fewParts: p.PartLimit != 0}
}

// other returns a sample for another object, which does not exist yet.
func (x *sample) other(suffix string) *sample {
	return &sample{scratch: x.scratch, key: x.key + suffix, profile: x.profile}
}

// ifMatch formats an ETag as the server expects it in conditions.
func (x *sample) ifMatch(etag string) *string { return aws.String(x.profile.ETagHeader(etag)) }

// put stores the object with one request, with the conditions of in.
func (x *sample) put(ctx context.Context, in *s3.PutObjectInput) (*s3.PutObjectOutput, error) {
	in.Bucket, in.Key, in.Body = &x.bucket, &x.key, strings.NewReader(content)
	out, err := x.PutObject(ctx, in)
	if err == nil {
		x.etag = aws.ToString(out.ETag)
	}
	return out, err
}

// putAgain stores the object without a condition.
func (x *sample) putAgain(ctx context.Context) error {
	_, err := x.put(ctx, &s3.PutObjectInput{})
	return err
}

// begin creates a multipart upload.
func (x *sample) begin(ctx context.Context) (id *string, err error) {
	created, err := x.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &x.bucket, Key: &x.key})
	if err != nil {
		return nil, err
	}
	return created.UploadId, nil
}

// part uploads a part.
func (x *sample) part(ctx context.Context, id *string, number int32) (*s3.UploadPartOutput, error) {
	return x.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &x.bucket, Key: &x.key, UploadId: id, PartNumber: &number, Body: strings.NewReader(content),
	})
}

// uploadWhole uploads the object as one part, and fills in the request that completes the upload.
func (x *sample) uploadWhole(ctx context.Context, in *s3.CompleteMultipartUploadInput) error {
	id, err := x.begin(ctx)
	if err != nil {
		return err
	}
	part, err := x.part(ctx, id, 1)
	if err != nil {
		return err
	}
	in.Bucket, in.Key, in.UploadId, in.MultipartUpload = &x.bucket, &x.key, id, onePart(part)
	return nil
}

// onePart returns the part list of an upload with one part.
func onePart(first *s3.UploadPartOutput) *types.CompletedMultipartUpload {
	return &types.CompletedMultipartUpload{
		Parts: []types.CompletedPart{{ETag: first.ETag, PartNumber: aws.Int32(1)}},
	}
}

// complete stores the object with a multipart upload of one part, with the conditions of in.
func (x *sample) complete(
	ctx context.Context, in *s3.CompleteMultipartUploadInput,
) (*s3.CompleteMultipartUploadOutput, error) {
	if err := x.uploadWhole(ctx, in); err != nil {
		return nil, err
	}
	out, err := x.CompleteMultipartUpload(ctx, in)
	if err != nil {
		return nil, err
	}
	if x.etag = aws.ToString(out.ETag); x.etag == "" { // Ceph 16 sends no ETag
		head, err := x.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &x.bucket, Key: &x.key})
		if err != nil {
			return nil, err
		}
		x.etag = aws.ToString(head.ETag)
	}
	return out, nil
}

// copyPart copies the object as a part of a new upload, on the condition that it has this ETag.
func (x *sample) copyPart(ctx context.Context, etag *string) (bool, error) {
	id, err := x.begin(ctx)
	if err != nil {
		return false, err
	}
	out, err := x.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
		Bucket: &x.bucket, Key: &x.key, UploadId: id, PartNumber: aws.Int32(1),
		CopySource: copySource(x.bucket, x.key), CopySourceIfMatch: etag,
	})
	return err == nil && out.CopyPartResult != nil && out.CopyPartResult.ETag != nil, err
}

// copySource returns the percent-encoded source of a copy (RFC 3986 section 2.1).
func copySource(bucket, key string) *string {
	return aws.String(bucket + "/" + strings.ReplaceAll((&url.URL{Path: key}).EscapedPath(), "+", "%2B"))
}

// list lists the objects whose keys have a prefix.
func (x *sample) list(ctx context.Context, prefix string) ([]types.Object, error) {
	out, err := x.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &x.bucket, Prefix: &prefix})
	if err != nil {
		return nil, err
	}
	return out.Contents, nil
}

// deleteAll deletes the object with DeleteObjects, on the condition that it has this ETag, and reports whether it was
// deleted.
func (x *sample) deleteAll(ctx context.Context, etag *string) (bool, error) {
	out, err := x.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &x.bucket, Delete: &types.Delete{
		Objects: []types.ObjectIdentifier{{Key: &x.key, ETag: etag}},
	}})
	if err != nil {
		return false, err
	}
	return len(out.Deleted) == 1 && len(out.Errors) == 0, nil
}
