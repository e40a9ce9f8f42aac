package driver

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// errReplaced is about a version that is to be deleted and is not there any more, because something else has its key.
var errReplaced = s3errors.New(syscall.ESTALE, "object was replaced before it could be deleted")

// deleteVersion deletes an object if it is still this version, by its ETag and size. The error is ESTALE where another object has the key:
// that one stays. It is no error that nothing has the key any more.
//
// A server without conditional deletes is asked right before for what is there. An object that is stored between these two requests is
// deleted; a bucket that keeps versions gets it back.
//
// It never deletes by the ID of a version: that would remove it from the history of the bucket, and show the version before it.
func (b *bucket) deleteVersion(ctx context.Context, v version) error {
	return b.deleteVersionBy(ctx, v, &attempts{})
}

// deleteVersionBy is deleteVersion by attempts that are counted.
func (b *bucket) deleteVersionBy(ctx context.Context, v version, tries *attempts) error {
	if b.profile.ConditionalDelete {
		return b.deleteSeen(ctx, v, tries)
	}
	now, a, err := b.head(ctx, v.key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case a.encryption.customer && v.isAsOld(now): // MinIO lists another ETag, because listings do not have the key
	case !v.isStill(now):
		return errReplaced
	}
	return b.deleteSeen(ctx, now, tries)
}

// isAsOld tells whether S3 still has this version, by its size and the second in which it was stored.
func (v *version) isAsOld(now version) bool {
	return v.key == now.key && v.size == now.size && v.modTime.Truncate(time.Second).Equal(now.modTime.Truncate(time.Second))
}

// deleteSeen is deleteVersion for a version of which S3 has told a moment ago.
func (b *bucket) deleteSeen(ctx context.Context, v version, tries *attempts) error {
	in := &s3.DeleteObjectInput{Bucket: &b.name, Key: &v.key}
	if b.profile.ConditionalDelete {
		in.IfMatch = condition{etag: v.etag}.ifMatch()
	}
	out, err := b.client.DeleteObject(ctx, in, tries.counted)
	if err != nil {
		_, err = b.settle(ctx, v.key, tries, err, deleted)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case in.IfMatch == nil && v.id != "" && out != nil && aws.ToBool(out.DeleteMarker) && out.VersionId != nil:
		return b.uncover(ctx, v, *out.VersionId)
	}
	return nil
}

// isStill tells whether S3 still has this version, by what it tells of the key now.
func (v *version) isStill(now version) bool {
	return v.key == now.key && v.size == now.size && strings.Trim(v.etag, `"`) == strings.Trim(now.etag, `"`)
}

// uncover looks what S3 has covered with a delete marker. If it is another version than the one that was to be deleted, the marker goes and
// the error is ESTALE. Where S3 does not let these credentials look, the version was checked right before.
func (b *bucket) uncover(ctx context.Context, v version, marker string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	out, err := b.client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{
		Bucket: &b.name, Prefix: &v.key, MaxKeys: aws.Int32(2), EncodingType: types.EncodingTypeUrl, // the marker, and what is below it
	}, repeatable)
	if err != nil || len(out.DeleteMarkers) == 0 || aws.ToString(out.DeleteMarkers[0].VersionId) != marker || len(out.Versions) == 0 {
		return nil
	}
	covered := out.Versions[0]
	if key, _ := (&page{encoded: out.EncodingType == types.EncodingTypeUrl}).decode(covered.Key); key != v.key {
		return nil
	}
	if aws.ToString(covered.VersionId) == v.id || strings.Trim(aws.ToString(covered.ETag), `"`) == strings.Trim(v.etag, `"`) {
		return nil
	}
	_, err = b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: &v.key, VersionId: &marker}, repeatable)
	if err != nil {
		return s3errors.FromSDK(err)
	}
	return errReplaced
}

// deleteVersions deletes versions of one directory by few requests, each as deleteVersion does, and returns the size of what it has deleted.
// All but those that were replaced are deleted; the error is then ESTALE. The versions are in the order of their keys, and the key
// before them in a listing is after.
func (b *bucket) deleteVersions(ctx context.Context, prefix, after string, versions []version) (bytes int64, err error) {
	if b.profile.ConditionalBatchDelete {
		return b.deleteMatching(ctx, versions)
	}
	still, err := b.unchanged(ctx, prefix, after, versions)
	if err != nil {
		return 0, err
	}
	if err := b.deleteAll(ctx, still); err != nil {
		return 0, err
	}
	if len(still) < len(versions) {
		err = errReplaced
	}
	return sizeOfAll(still), err
}

// deleteMatching is deleteVersions where S3 compares the ETags.
func (b *bucket) deleteMatching(ctx context.Context, versions []version) (bytes int64, err error) {
	in := &types.Delete{Quiet: aws.Bool(true), Objects: make([]types.ObjectIdentifier, len(versions))}
	byKey := make(map[string]version, len(versions))
	for i, v := range versions {
		in.Objects[i] = types.ObjectIdentifier{Key: &v.key, ETag: condition{etag: v.etag}.ifMatch()}
		byKey[v.key] = v
	}
	out, err := b.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &b.name, Delete: in}, repeatable)
	var left []version
	switch err = s3errors.FromSDK(err); {
	case err == nil:
		for _, refused := range out.Errors {
			if v, ok := byKey[aws.ToString(refused.Key)]; ok {
				left = append(left, v)
			}
		}
	case errors.Is(err, syscall.EAGAIN) || ctx.Err() != nil:
		return 0, err
	default:
		left = versions
	}
	bytes = sizeOfAll(versions) - sizeOfAll(left)
	var replaced error
	for _, v := range left { // one by one, whose errors tell more
		switch err := b.deleteVersion(ctx, v); {
		case err == nil:
			bytes += v.size
		case errors.Is(err, syscall.ESTALE):
			replaced = err
		default:
			return bytes, err
		}
	}
	return bytes, replaced
}

// unchanged returns those of the versions that S3 still has, by a listing. Those of which nothing is left are among them: there is nothing
// that could be deleted by mistake.
func (b *bucket) unchanged(ctx context.Context, prefix, after string, versions []version) ([]version, error) {
	last := versions[len(versions)-1].key
	replaced := map[string]bool{}
	byKey := make(map[string]*version, len(versions))
	for i := range versions {
		byKey[versions[i].key] = &versions[i]
	}
	for in := (listing{prefix: prefix, after: after}); ; {
		page, err := b.list(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, now := range page.versions {
			if v := byKey[now.key]; v != nil && !v.isStill(now) {
				replaced[now.key] = true
			}
		}
		if page.next == "" || page.last() >= last {
			break
		}
		in.token = page.next
	}
	still := make([]version, 0, len(versions))
	for _, v := range versions {
		if !replaced[v.key] {
			still = append(still, v)
		}
	}
	return still, nil
}

func sizeOfAll(versions []version) int64 {
	var bytes int64
	for _, v := range versions {
		bytes += v.size
	}
	return bytes
}
