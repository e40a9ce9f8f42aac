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

// CheckCondition reports whether a condition holds now. It is for servers that do not take the condition with the next
// request, which replaces what another client stores in between.
func (b *Bucket) CheckCondition(ctx context.Context, key string, c Condition) error {
	_, err := b.precondition(ctx, key, c, false)
	return c.Failed(err)
}

// Copy copies a version with one request, also from another bucket, on a condition of what it replaces.
func (b *Bucket) Copy(
	ctx context.Context, v Version, a *s3object.Attributes, to string, c Condition,
) (Stored, error) {
	w := change{key: to, name: newName(), condition: c, supported: b.Profile.ConditionalCopy,
		timeout: copying(v.Size, silenceTimeout)}
	w.send = func(ctx context.Context, c Condition) (Stored, error) {
		in := &s3.CopyObjectInput{
			Bucket: &b.Name, Key: &to, IfMatch: c.ifMatch(&b.Profile), IfNoneMatch: c.ifNoneMatch(),
			CopySource: v.copySource(), CopySourceIfMatch: b.sourceIfMatch(v),
			CopySourceIfUnmodifiedSince: b.sourceUnmodifiedSince(v),
		}
		a.ApplyToCopy(in)
		if in.MetadataDirective == types.MetadataDirectiveReplace {
			in.Metadata = named(in.Metadata, w.name)
		}
		out, err := call(ctx, b, b.client.CopyObject, in)
		if err == nil && (out.CopyObjectResult == nil || !hasETag(out.CopyObjectResult.ETag)) {
			err = b.noETag(out.ResultMetadata)
		}
		if err != nil {
			return Stored{}, err
		}
		return Stored{ETag: *out.CopyObjectResult.ETag, Name: in.Metadata[s3object.WriteKey]}, nil
	}
	made, err := b.perform(ctx, w)
	if errors.Is(err, syscall.ESTALE) && c.Absent && b.CheckCondition(ctx, to, c) == nil {
		return Stored{}, err // it is the source that was replaced
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

// sourceUnmodifiedSince returns the condition by the time of a version, if S3 cannot compare its ETag. A version that
// was stored within the same second may be copied instead. A rename and an append notice that before they delete or
// replace anything.
func (b *Bucket) sourceUnmodifiedSince(v Version) *time.Time {
	if !b.Profile.UncheckedSources && !isWeak(v.ETag) {
		return nil
	}
	return v.unmodifiedSince()
}

// copySource returns the name of an object for a header, in percent-encoding (RFC 3986 section 2.1). It includes the
// version ID if the bucket shows the past.
func (v Version) copySource() *string {
	source := v.Bucket.Name + "/" + s3object.PercentEncode(v.Key)
	if v.Bucket.isPast {
		source += "?versionId=" + url.QueryEscape(cmp.Or(v.ID, noVersion))
	}
	return &source
}
