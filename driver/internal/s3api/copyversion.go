package s3api

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// CheckCondition checks a condition with HeadObject. Use it for servers that do not support the condition in the
// request that follows. A change between the two requests is overwritten.
func (b *Bucket) CheckCondition(ctx context.Context, key string, c Condition) error {
	_, err := b.precondition(ctx, key, c, false)
	return c.Failed(err)
}

// Copy copies a version, which may be in another bucket, with one request. The condition applies to the object that the
// copy replaces.
func (b *Bucket) Copy(
	ctx context.Context, v Version, a *s3object.Attributes, to string, c Condition,
) (Result, error) {
	w := conditionalWrite{key: to, name: newName(), condition: c, supported: b.Profile.ConditionalCopy,
		timeout: copyTimeout(v.Size, silenceTimeout)}
	w.send = func(ctx context.Context, c Condition) (Result, error) {
		in := &s3.CopyObjectInput{
			Bucket: &b.Name, Key: &to, IfMatch: c.ifMatch(&b.Profile), IfNoneMatch: c.ifNoneMatch(),
			CopySource: v.copySource(), CopySourceIfMatch: b.sourceIfMatch(v),
			CopySourceIfUnmodifiedSince: b.sourceUnmodifiedSince(v),
		}
		a.ApplyToCopy(in)
		if in.MetadataDirective == types.MetadataDirectiveReplace {
			in.Metadata = withName(in.Metadata, w.name)
		}
		out, err := call(ctx, b, b.client.CopyObject, in)
		if err == nil && (out.CopyObjectResult == nil || !hasETag(out.CopyObjectResult.ETag)) {
			err = b.noETag(out.ResultMetadata)
		}
		if err != nil {
			return Result{}, err
		}
		return Result{ETag: *out.CopyObjectResult.ETag, Name: in.Metadata[s3object.WriteKey]}, nil
	}
	made, err := b.perform(ctx, w)
	if errors.Is(err, syscall.ESTALE) && c.Absent && b.CheckCondition(ctx, to, c) == nil {
		return Result{}, err // the source was replaced, not the target
	}
	return made, c.Failed(err)
}

// sourceIfMatch returns the condition of a request that copies a version, by its ETag.
func (b *Bucket) sourceIfMatch(v Version) *string {
	if b.Profile.UncheckedSources {
		return nil
	}
	return Condition{ETag: v.ETag}.ifMatch(&b.Profile)
}

// sourceUnmodifiedSince returns a condition on the time of a version, if S3 cannot compare its ETag. S3 may then copy
// another version that was stored within the same second. Renames and appends notice that before they delete or replace
// anything.
func (b *Bucket) sourceUnmodifiedSince(v Version) *time.Time {
	if !b.Profile.UncheckedSources && !isWeak(v.ETag) {
		return nil
	}
	return v.unmodifiedSince()
}

// copySource returns the percent-encoded value of the copy source header (RFC 3986 section 2.1). It includes the
// version ID if the bucket shows the past.
func (v Version) copySource() *string {
	source := v.Bucket.Name + "/" + s3object.PercentEncode(v.Key)
	if v.Bucket.isPast {
		source += "?versionId=" + url.QueryEscape(cmp.Or(v.ID, noVersion))
	}
	return &source
}
