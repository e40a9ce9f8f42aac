package s3client

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

const (
	// timeout is how long a probe may take, and how long it may take to remove its object.
	timeout = 10 * time.Second

	// keyPrefix begins the key of the object. The segment is the driver's own: no pathname has it.
	keyPrefix = ".babelftp/overwrite-"

	content   = "x"
	wrongETag = `"00000000000000000000000000000000"` // of no object
)

// newKey is a key below the prefix of a tenant that no object has.
func newKey(prefix string) string { return prefix + keyPrefix + strings.ToLower(rand.Text()) }

// Profile adds to a profile what a server of which nothing is known can do, with an object below a prefix of keys. A
// refusal of any kind shows nothing; the error is one of the network.
func probeProfile(
	ctx context.Context, client *s3.Client, bucket, prefix string, p driver.Profile,
) (driver.Profile, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	x := &prober{client: client, bucket: bucket, key: newKey(prefix), profile: &p}
	defer func() { x.discard(ctx) }()
	_, err := x.put(ctx, &s3.PutObjectInput{})
	switch {
	case s3error.Status(err) != 0: // the credentials may write nothing here
		return p, nil
	case err != nil:
		return p, err
	}
	p.MD5ETags = isMD5(x.etag)
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
		{&p.FewParts, x.fewParts},
		{&p.OtherListedETags, x.otherListedETags},
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
	return p, nil
}

// A prober makes requests for one object. Its methods tell whether the server does what AWS does.
type prober struct {
	client      *s3.Client
	bucket, key string
	etag        string // of the object
	profile     *driver.Profile
	completed   *string   // the last upload
	untold      bool      // the answer to it had no ETag
	versions    []*string // of the object that were stored, and of its delete markers
}

func (x *prober) put(ctx context.Context, in *s3.PutObjectInput) (*s3.PutObjectOutput, error) {
	in.Bucket, in.Key, in.Body = &x.bucket, &x.key, strings.NewReader(content)
	out, err := x.client.PutObject(ctx, in)
	if err == nil {
		x.etag = aws.ToString(out.ETag)
		x.versions = append(x.versions, out.VersionId)
	}
	return out, err
}

// refusesWrong tries a request on a condition that does not hold, and then on one that does.
func (x *prober) refusesWrong(wrong, right func() error) (bool, error) {
	if err := refused(wrong()); errors.Is(err, ErrReplaced) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	err := right()
	return err == nil, err
}

// ifMatch is an ETag as the server compares it.
func (x *prober) ifMatch(etag string) *string { return aws.String(x.profile.ETagHeader(etag)) }

// exclusivePut tries to replace the object although the request forbids it, and to store another one several times at
// once.
func (x *prober) exclusivePut(ctx context.Context) (bool, error) {
	_, err := x.put(ctx, &s3.PutObjectInput{IfNoneMatch: aws.String("*")})
	if alone, err := exclusive(err); err != nil || !alone {
		return false, err
	}
	return x.racePuts(ctx)
}

// exclusive tells whether a server has refused to replace an object.
func exclusive(err error) (bool, error) {
	err = refused(err)
	return err == nil, ignore(err, ErrReplaced)
}

func (x *prober) conditionalPut(ctx context.Context) (bool, error) {
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
func (x *prober) unquotedETags(ctx context.Context) (bool, error) {
	if x.profile.ConditionalPut || !x.profile.ExclusivePut {
		return false, nil
	}
	bare := *x
	bare.profile = &driver.Profile{UnquotedETags: true, ExclusivePut: true}
	works, err := bare.conditionalPut(ctx)
	x.etag, x.versions = bare.etag, bare.versions
	return works, err
}

// ignore returns nil for an error that is expected.
func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// upload begins a multipart upload, which is aborted when done is called, unless it was completed.
func (x *prober) upload(ctx context.Context) (id *string, done func(), err error) {
	created, err := x.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &x.bucket, Key: &x.key})
	if err != nil {
		return nil, nil, err
	}
	return created.UploadId, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		_, _ = x.client.AbortMultipartUpload(
			ctx, &s3.AbortMultipartUploadInput{Bucket: &x.bucket, Key: &x.key, UploadId: created.UploadId})
	}, nil
}

// A precondition is that of a request to complete an upload.
type precondition struct{ ifMatch, ifNoneMatch *string }

// complete stores the object by an upload of one part.
func (x *prober) complete(ctx context.Context, c precondition) error {
	id, done, err := x.upload(ctx)
	if err != nil {
		return err
	}
	defer done()
	part, err := x.part(ctx, id, 1)
	if err != nil {
		return err
	}
	out, err := x.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &x.bucket, Key: &x.key, UploadId: id, IfMatch: c.ifMatch, IfNoneMatch: c.ifNoneMatch,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{ETag: part.ETag,
			PartNumber: aws.Int32(1)}}},
	})
	if err == nil {
		x.etag, x.completed = aws.ToString(out.ETag), id
		x.untold = x.etag == ""
		x.versions = append(x.versions, out.VersionId)
	}
	if err == nil && x.untold { // Ceph 16
		var head *s3.HeadObjectOutput
		if head, err = x.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &x.bucket, Key: &x.key}); err == nil {
			x.etag = aws.ToString(head.ETag)
		}
	}
	return err
}

// part uploads a part. Without a checksum it carries a Content-MD5, which a bucket with Object Lock wants.
func (x *prober) part(ctx context.Context, id *string, number int32) (*s3.UploadPartOutput, error) {
	return x.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &x.bucket, Key: &x.key, UploadId: id, PartNumber: &number, Body: strings.NewReader(content),
	}, withMD5)
}

// withMD5 sends a Content-MD5 in place of a checksum.
func withMD5(o *s3.Options) {
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	o.APIOptions = append(o.APIOptions, smithyhttp.AddContentChecksumMiddleware)
}

// exclusiveComplete believes a server only if PutObject has the condition too. Swift has it of
// CompleteMultipartUpload alone, and does not keep it when two clients complete uploads at the same time.
func (x *prober) exclusiveComplete(ctx context.Context) (bool, error) {
	if !x.profile.ExclusivePut {
		return false, nil
	}
	if alone, err := exclusive(x.complete(ctx, precondition{ifNoneMatch: aws.String("*")})); err != nil || !alone {
		return false, err
	}
	return x.raceCompletes(ctx)
}

func (x *prober) conditionalComplete(ctx context.Context) (bool, error) {
	if !x.profile.ExclusiveComplete {
		return false, nil
	}
	complete := func(etag string) func() error {
		return func() error { return x.complete(ctx, precondition{ifMatch: x.ifMatch(etag)}) }
	}
	return x.refusesWrong(complete(wrongETag), complete(x.etag))
}

// fewParts tells whether the server refuses the part that follows the thousandth.
func (x *prober) fewParts(ctx context.Context) (bool, error) {
	id, done, err := x.upload(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	few := driver.Profile{FewParts: true}
	_, err = x.part(ctx, id, int32(few.MaxParts())+1)
	return s3error.Status(err) == http.StatusBadRequest, err
}

// uncheckedSources tells whether the server refuses the right ETag of the source, which was stored by parts, or does
// not refuse a wrong one.
func (x *prober) uncheckedSources(ctx context.Context) (bool, error) {
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
func (x *prober) unendedUploads(ctx context.Context) (bool, error) {
	if err := x.complete(ctx, precondition{}); err != nil {
		return false, err
	}
	_, err := x.client.ListParts(ctx, &s3.ListPartsInput{Bucket: &x.bucket, Key: &x.key, UploadId: x.completed})
	return err == nil, err
}

// untoldETags tells whether the answer to CompleteMultipartUpload has no ETag.
func (x *prober) untoldETags(ctx context.Context) (bool, error) {
	err := x.complete(ctx, precondition{})
	return err == nil && x.untold, err
}

// otherListedETags tells whether a listing shows the copy of an object that was stored by parts with another ETag
// than HeadObject.
func (x *prober) otherListedETags(ctx context.Context) (bool, error) {
	if err := x.complete(ctx, precondition{}); err != nil {
		return false, err
	}
	copied := x.other("-copy")
	defer func() { copied.discard(ctx) }()
	if err := copied.copyFrom(ctx, x.key, &s3.CopyObjectInput{}); err != nil {
		return false, err
	}
	head, err := x.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &x.bucket, Key: &copied.key})
	if err != nil {
		return false, err
	}
	listed, err := x.list(ctx, copied.key)
	if err != nil || len(listed) == 0 {
		return false, err
	}
	return trimmed(listed[0].ETag) != trimmed(head.ETag), nil
}

func trimmed(etag *string) string { return strings.Trim(aws.ToString(etag), `"`) }

// copyFrom copies another object.
func (x *prober) copyFrom(ctx context.Context, source string, in *s3.CopyObjectInput) error {
	in.Bucket, in.Key, in.CopySource = &x.bucket, &x.key, aws.String(x.bucket+"/"+escape(source))
	out, err := x.client.CopyObject(ctx, in)
	if err == nil {
		x.versions = append(x.versions, out.VersionId)
		if out.CopyObjectResult != nil {
			x.etag = aws.ToString(out.CopyObjectResult.ETag)
		}
	}
	return err
}

// list lists the objects whose keys have a prefix.
func (x *prober) list(ctx context.Context, prefix string) ([]types.Object, error) {
	out, err := x.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &x.bucket, Prefix: &prefix})
	if err != nil {
		return nil, err
	}
	return out.Contents, nil
}

func (x *prober) partCopy(ctx context.Context) (bool, error) { return x.copyPart(ctx, nil) }

// copyPart makes a part of the object, on the condition that it has an ETag.
func (x *prober) copyPart(ctx context.Context, etag *string) (bool, error) {
	id, done, err := x.upload(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	out, err := x.client.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
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
func (x *prober) putAgain(ctx context.Context) error {
	_, err := x.put(ctx, &s3.PutObjectInput{})
	return err
}

// conditionalDelete deletes an object that was stored by parts: Swift refuses its right ETag.
func (x *prober) conditionalDelete(ctx context.Context) (bool, error) {
	remove := func(etag *string) func() error {
		return func() error {
			out, err := x.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &x.bucket, Key: &x.key, IfMatch: etag})
			if err == nil {
				x.versions = append(x.versions, out.VersionId)
			}
			return err
		}
	}
	return x.refusesWrong(remove(x.ifMatch(wrongETag)), remove(x.ifMatch(x.etag)))
}

// deleteAll deletes the object by DeleteObjects, on the condition that it has an ETag, and tells whether it was
// deleted.
func (x *prober) deleteAll(ctx context.Context, etag *string) (bool, error) {
	out, err := x.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &x.bucket, Delete: &types.Delete{
		Objects: []types.ObjectIdentifier{{Key: &x.key, ETag: etag}},
	}}, withMD5)
	if err != nil {
		return false, err
	}
	for _, deleted := range out.Deleted {
		x.versions = append(x.versions, deleted.DeleteMarkerVersionId)
	}
	return len(out.Deleted) == 1 && len(out.Errors) == 0, nil
}

func (x *prober) conditionalBatchDelete(ctx context.Context) (bool, error) {
	if err := x.putAgain(ctx); err != nil {
		return false, err
	}
	if deleted, err := x.deleteAll(ctx, aws.String(wrongETag)); err != nil || deleted {
		return false, err
	}
	return x.deleteAll(ctx, x.ifMatch(x.etag))
}

func (x *prober) batchDelete(ctx context.Context) (bool, error) {
	if err := x.putAgain(ctx); err != nil {
		return false, err
	}
	return x.deleteAll(ctx, nil)
}
