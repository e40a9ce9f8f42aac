package s3api

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// CheckCondition looks whether a condition holds now. It is for servers without a condition for the next request. That request replaces what
// another client stores in between.
func (b *Bucket) CheckCondition(ctx context.Context, key string, c Condition) error {
	_, err := b.precondition(ctx, key, c, false)
	return c.Failed(err)
}

// Copy copies a version by one request, also from another bucket, on a condition of what it replaces. It returns the ETag of the copy.
func (b *Bucket) Copy(ctx context.Context, v Version, a *attributes.Attributes, to string, c Condition) (etag string, err error) {
	known, err := b.precondition(ctx, to, c, b.Profile.ConditionalCopy)
	if err != nil {
		return "", c.Failed(err)
	}
	c = known // to S3
	in := &s3.CopyObjectInput{
		Bucket: &b.Name, Key: &to, IfMatch: c.ifMatch(), IfNoneMatch: c.ifNoneMatch(),
		CopySource: v.copySource(), CopySourceIfMatch: Condition{ETag: v.ETag}.ifMatch(),
	}
	done := v.evidenceOfCopy(b, to, a.Metadata)
	if v.Bucket.Name == b.Name && v.Key == to {
		done = v.evidenceOfRewrite(a.Metadata)
	}
	if a.Expires == nil && !a.Edited {
		a.ApplyToCopy(in)
	} else {
		a.ReplaceInCopy(in) // MinIO forgets when it expires otherwise
	}
	etag, err = b.copyObject(ctx, in, done)
	if errors.Is(err, syscall.ESTALE) && c.Absent && b.CheckCondition(ctx, to, c) == nil {
		return "", err // it is the source that was replaced
	}
	return etag, c.Failed(err)
}

// copyObject makes the request. done tells from a look at the object whether S3 has performed it.
func (b *Bucket) copyObject(ctx context.Context, in *s3.CopyObjectInput, done evidence) (etag string, err error) {
	tries := attempts{begun: time.Now()}
	out, err := b.client.CopyObject(ctx, in, tries.countAttempts)
	switch {
	case err != nil:
	case out.CopyObjectResult == nil || out.CopyObjectResult.ETag == nil:
		err = s3errors.ErrNoResult
	default:
		return *out.CopyObjectResult.ETag, nil
	}
	return b.reconcile(ctx, *in.Key, &tries, err, done)
}

// copySource names an object in a header, in percent-encoding (RFC 3986 section 2.1).
func (v Version) copySource() *string {
	source := v.Bucket.Name + "/" + keys.PercentEncode(v.Key)
	return &source
}
