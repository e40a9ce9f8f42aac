package s3api

import (
	"context"
	"errors"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

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
func (b *Bucket) Copy(ctx context.Context, v Version, a *attributes.Attributes, to string, c Condition) (etag string, _ error) {
	w := change{key: to, name: newName(), condition: c, supported: b.Profile.ConditionalCopy, timeout: unlimited}
	w.send = func(ctx context.Context, c Condition) (Stored, error) {
		in := &s3.CopyObjectInput{
			Bucket: &b.Name, Key: &to, IfMatch: c.ifMatch(&b.Profile), IfNoneMatch: c.ifNoneMatch(),
			CopySource: v.copySource(), CopySourceIfMatch: Condition{ETag: v.ETag}.ifMatch(&b.Profile),
			CopySourceIfUnmodifiedSince: v.unmodifiedSince(),
		}
		a.ApplyToCopy(in)
		if in.MetadataDirective == types.MetadataDirectiveReplace {
			in.Metadata = named(in.Metadata, w.name)
		}
		out, err := b.client.CopyObject(ctx, in, once)
		if err == nil && (out.CopyObjectResult == nil || !hasETag(out.CopyObjectResult.ETag)) {
			err = s3errors.ErrNoResult
		}
		if err != nil {
			return Stored{}, err
		}
		return Stored{ETag: *out.CopyObjectResult.ETag}, nil
	}
	made, err := b.perform(ctx, w)
	if errors.Is(err, syscall.ESTALE) && c.Absent && b.CheckCondition(ctx, to, c) == nil {
		return "", err // it is the source that was replaced
	}
	return made.ETag, c.Failed(err)
}

// copySource names an object in a header, in percent-encoding (RFC 3986 section 2.1).
func (v Version) copySource() *string {
	source := v.Bucket.Name + "/" + keys.PercentEncode(v.Key)
	return &source
}
