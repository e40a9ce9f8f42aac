package s3client

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/profile"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

const (
	// timeout is how long it may take to find out what a server can do.
	timeout = 10 * time.Second

	// reserved begins the keys, behind the prefix of a bucket, that are for the server itself. No pathname has the
	// segment.
	reserved = driver.Reserved + "/"

	content   = "x"
	wrongETag = `"00000000000000000000000000000000"` // of no object
)

// probeProfile adds to a profile what a server of which nothing is known can do, with an object below a prefix of keys.
// A refusal of any kind shows nothing; the error is one of the network.
func probeProfile(ctx context.Context, s *scratch, prefix string, p driver.Profile) (driver.Profile, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	x := newSample(s, prefix, &p)
	_, err := x.put(ctx, &s3.PutObjectInput{})
	switch {
	case s3error.Status(err) != 0: // the credentials may write nothing here
		return p, nil
	case err != nil:
		return p, err
	}
	p.MD5ETags = isMD5(x.etag)
	fewParts := false
	for _, feature := range []struct {
		has *bool
		try func(context.Context) (bool, error)
	}{
		{&p.ExclusivePut, x.exclusivePut},
		{&p.ConditionalPut, x.conditionalPut},
		{&p.UnquotedETags, x.unquotedETags},
		{&p.ConditionalPut, x.conditionalPut}, // again, with ETags as the server compares them
		{&p.ExclusiveComplete, x.exclusiveComplete},
		{&p.ConditionalComplete, x.conditionalComplete},
		{&p.UntoldETags, x.untoldETags},
		{&fewParts, x.fewParts},
		{&p.PartCopy, x.partCopy},
		{&p.UncheckedSources, x.uncheckedSources},
		{&p.UnendedUploads, x.unendedUploads},
		{&p.ConditionalDelete, x.conditionalDelete},
		{&p.ConditionalBatchDelete, x.conditionalBatchDelete},
		{&p.BatchDelete, x.batchDelete},
	} {
		if *feature.has, err = feature.try(ctx); s3error.Status(err) == 0 && err != nil {
			return p, err
		}
	}
	if fewParts {
		p.PartLimit = profile.FewParts
	}
	return p, nil
}

// A sample is an object by which a server shows what it can do. Its methods tell whether the server does what AWS does.
type sample struct {
	*scratch
	key       string
	etag      string
	profile   *driver.Profile
	completed *string // the last upload
	untold    bool    // the answer to it had no ETag
}

// newSample is one below the prefix of a tenant, with a key that no object has.
func newSample(s *scratch, prefix string, p *driver.Profile) *sample {
	return &sample{scratch: s, key: prefix + reserved + "overwrite-" + strings.ToLower(rand.Text()), profile: p}
}

// other is a sample of another object, which no one has stored.
func (x *sample) other(suffix string) *sample {
	return &sample{scratch: x.scratch, key: x.key + suffix, profile: x.profile}
}

func (x *sample) put(ctx context.Context, in *s3.PutObjectInput) (*s3.PutObjectOutput, error) {
	in.Bucket, in.Key, in.Body = &x.bucket, &x.key, strings.NewReader(content)
	out, err := x.PutObject(ctx, in)
	if err == nil {
		x.etag = aws.ToString(out.ETag)
	}
	return out, err
}

// refusesWrong tries a request on a condition that does not hold, and then on one that does.
func (x *sample) refusesWrong(wrong, right func() error) (bool, error) {
	if refused, err := refused(wrong()); !refused {
		return false, err
	}
	err := right()
	return err == nil, err
}

// ifMatch is an ETag as the server compares it.
func (x *sample) ifMatch(etag string) *string { return aws.String(x.profile.ETagHeader(etag)) }

// exclusivePut tries to replace the object although the request forbids it, and to store another one several times at
// once.
func (x *sample) exclusivePut(ctx context.Context) (bool, error) {
	_, err := x.put(ctx, &s3.PutObjectInput{IfNoneMatch: aws.String("*")})
	if refused, err := refused(err); !refused {
		return false, err
	}
	return x.racePuts(ctx)
}

func (x *sample) conditionalPut(ctx context.Context) (bool, error) {
	put := func(etag string) func() error {
		return func() error {
			_, err := x.put(ctx, &s3.PutObjectInput{IfMatch: x.ifMatch(etag)})
			return err
		}
	}
	if !x.profile.ExclusivePut {
		return false, nil
	}
	return x.refusesWrong(put(wrongETag), put(x.etag))
}

// unquotedETags tells whether the server refuses the right ETag in quotes and not without.
func (x *sample) unquotedETags(ctx context.Context) (bool, error) {
	if x.profile.ConditionalPut || !x.profile.ExclusivePut {
		return false, nil
	}
	bare := *x
	bare.profile = &driver.Profile{UnquotedETags: true, ExclusivePut: true}
	works, err := bare.conditionalPut(ctx)
	x.etag = bare.etag
	return works, err
}

// upload begins a multipart upload.
func (x *sample) upload(ctx context.Context) (id *string, err error) {
	created, err := x.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &x.bucket, Key: &x.key})
	if err != nil {
		return nil, err
	}
	return created.UploadId, nil
}

// uploadWhole uploads the object as one part, and returns the request that completes the upload.
func (x *sample) uploadWhole(ctx context.Context) (*s3.CompleteMultipartUploadInput, error) {
	id, err := x.upload(ctx)
	if err != nil {
		return nil, err
	}
	part, err := x.part(ctx, id, 1)
	if err != nil {
		return nil, err
	}
	return &s3.CompleteMultipartUploadInput{
		Bucket: &x.bucket, Key: &x.key, UploadId: id, MultipartUpload: onePart(part),
	}, nil
}

// onePart makes an upload of its first part.
func onePart(first *s3.UploadPartOutput) *types.CompletedMultipartUpload {
	return &types.CompletedMultipartUpload{
		Parts: []types.CompletedPart{{ETag: first.ETag, PartNumber: aws.Int32(1)}},
	}
}

// A precondition is that of a request to complete an upload.
type precondition struct{ ifMatch, ifNoneMatch *string }

// complete stores the object by an upload of one part.
func (x *sample) complete(ctx context.Context, c precondition) error {
	in, err := x.uploadWhole(ctx)
	if err != nil {
		return err
	}
	in.IfMatch, in.IfNoneMatch = c.ifMatch, c.ifNoneMatch
	out, err := x.CompleteMultipartUpload(ctx, in)
	if err == nil {
		x.etag, x.completed = aws.ToString(out.ETag), in.UploadId
		x.untold = x.etag == ""
	}
	if err == nil && x.untold { // Ceph 16
		var head *s3.HeadObjectOutput
		if head, err = x.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &x.bucket, Key: &x.key}); err == nil {
			x.etag = aws.ToString(head.ETag)
		}
	}
	return err
}

// part uploads a part.
func (x *sample) part(ctx context.Context, id *string, number int32) (*s3.UploadPartOutput, error) {
	return x.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &x.bucket, Key: &x.key, UploadId: id, PartNumber: &number, Body: strings.NewReader(content),
	})
}

// exclusiveComplete believes a server only if PutObject has the condition too. Swift has it of
// CompleteMultipartUpload alone, and does not keep it when two clients complete uploads at the same time.
func (x *sample) exclusiveComplete(ctx context.Context) (bool, error) {
	if !x.profile.ExclusivePut {
		return false, nil
	}
	if refused, err := refused(x.complete(ctx, precondition{ifNoneMatch: aws.String("*")})); !refused {
		return false, err
	}
	return x.raceCompletes(ctx)
}

func (x *sample) conditionalComplete(ctx context.Context) (bool, error) {
	if !x.profile.ExclusiveComplete {
		return false, nil
	}
	complete := func(etag string) func() error {
		return func() error { return x.complete(ctx, precondition{ifMatch: x.ifMatch(etag)}) }
	}
	return x.refusesWrong(complete(wrongETag), complete(x.etag))
}

// fewParts tells whether the server refuses the part that follows the thousandth.
func (x *sample) fewParts(ctx context.Context) (bool, error) {
	id, err := x.upload(ctx)
	if err != nil {
		return false, err
	}
	_, err = x.part(ctx, id, profile.FewParts+1)
	return s3error.Status(err) == http.StatusBadRequest, err
}

// uncheckedSources tells whether the server refuses the right ETag of the source, which was stored by parts, or does
// not refuse a wrong one.
func (x *sample) uncheckedSources(ctx context.Context) (bool, error) {
	if !x.profile.PartCopy {
		return false, nil
	}
	if err := x.complete(ctx, precondition{}); err != nil {
		return false, err
	}
	if copied, err := x.copyPart(ctx, x.ifMatch(wrongETag)); copied ||
		s3error.Status(err) != http.StatusPreconditionFailed {
		return copied, err
	}
	copied, err := x.copyPart(ctx, x.ifMatch(x.etag))
	return !copied && s3error.Status(err) == http.StatusPreconditionFailed, err
}

// unendedUploads tells whether the server has an upload that it has completed.
func (x *sample) unendedUploads(ctx context.Context) (bool, error) {
	if err := x.complete(ctx, precondition{}); err != nil {
		return false, err
	}
	_, err := x.ListParts(ctx, &s3.ListPartsInput{Bucket: &x.bucket, Key: &x.key, UploadId: x.completed})
	return err == nil, err
}

// untoldETags tells whether the answer to CompleteMultipartUpload has no ETag.
func (x *sample) untoldETags(ctx context.Context) (bool, error) {
	err := x.complete(ctx, precondition{})
	return err == nil && x.untold, err
}

// copyFrom copies another object.
func (x *sample) copyFrom(ctx context.Context, source string, in *s3.CopyObjectInput) error {
	in.Bucket, in.Key, in.CopySource = &x.bucket, &x.key, aws.String(x.bucket+"/"+escape(source))
	out, err := x.CopyObject(ctx, in)
	if err == nil && out.CopyObjectResult != nil {
		x.etag = aws.ToString(out.CopyObjectResult.ETag)
	}
	return err
}

// list lists the objects whose keys have a prefix.
func (x *sample) list(ctx context.Context, prefix string) ([]types.Object, error) {
	out, err := x.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &x.bucket, Prefix: &prefix})
	if err != nil {
		return nil, err
	}
	return out.Contents, nil
}

func (x *sample) partCopy(ctx context.Context) (bool, error) { return x.copyPart(ctx, nil) }

// copyPart makes a part of the object, on the condition that it has an ETag.
func (x *sample) copyPart(ctx context.Context, etag *string) (bool, error) {
	id, err := x.upload(ctx)
	if err != nil {
		return false, err
	}
	out, err := x.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
		Bucket: &x.bucket, Key: &x.key, UploadId: id, PartNumber: aws.Int32(1),
		CopySource:        aws.String(x.bucket + "/" + escape(x.key)),
		CopySourceIfMatch: etag,
	})
	return err == nil && out.CopyPartResult != nil && out.CopyPartResult.ETag != nil, err
}

// escape writes a key as the source of a copy has it, in percent-encoding (RFC 3986 section 2.1).
func escape(key string) string {
	return strings.ReplaceAll((&url.URL{Path: key}).EscapedPath(), "+", "%2B")
}

// putAgain stores the object again where it was deleted.
func (x *sample) putAgain(ctx context.Context) error {
	_, err := x.put(ctx, &s3.PutObjectInput{})
	return err
}

// conditionalDelete deletes an object that was stored by parts: Swift refuses its right ETag.
func (x *sample) conditionalDelete(ctx context.Context) (bool, error) {
	remove := func(etag *string) func() error {
		return func() error {
			_, err := x.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &x.bucket, Key: &x.key, IfMatch: etag})
			return err
		}
	}
	return x.refusesWrong(remove(x.ifMatch(wrongETag)), remove(x.ifMatch(x.etag)))
}

// deleteAll deletes the object by DeleteObjects, on the condition that it has an ETag, and tells whether it was
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

func (x *sample) conditionalBatchDelete(ctx context.Context) (bool, error) {
	if err := x.putAgain(ctx); err != nil {
		return false, err
	}
	if deleted, err := x.deleteAll(ctx, aws.String(wrongETag)); err != nil || deleted {
		return false, err
	}
	return x.deleteAll(ctx, x.ifMatch(x.etag))
}

func (x *sample) batchDelete(ctx context.Context) (bool, error) {
	if err := x.putAgain(ctx); err != nil {
		return false, err
	}
	return x.deleteAll(ctx, nil)
}
