package s3api

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// DeleteVersions deletes versions that S3 has just listed with one DeleteObjects request, in which the server compares
// ETags if it can. If the response does not confirm that a version was deleted, DeleteVersions deletes that version
// again with [Bucket.DeleteVersion], whose errors are more specific. It returns an error for each version. After an
// error other than ESTALE it sends no more requests, and the remaining versions get that error. Without a response to
// DeleteObjects, the error is EAGAIN for each object that still exists.
func (b *Bucket) DeleteVersions(ctx context.Context, versions []Version) []error {
	in := &types.Delete{Objects: make([]types.ObjectIdentifier, len(versions))}
	for i, v := range versions {
		in.Objects[i].Key = &v.Key
		if b.Profile.ConditionalBatchDelete {
			in.Objects[i].ETag = Condition{ETag: v.ETag}.ifMatch(&b.Profile)
		}
	}
	out, err := b.deleteObjects(ctx, in)
	var stopped error
	if ctx.Err() != nil {
		stopped = s3error.FromSDK(cmp.Or(err, ctx.Err()))
	}
	remove := b.DeleteVersion
	if err != nil && !s3error.NotPerformed(err) {
		failed := unknown(s3error.FromSDK(err))
		remove = func(ctx context.Context, v Version) error {
			if _, _, err := b.Head(ctx, v.Key); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return failed
		}
	}
	deleted := confirmed(out)
	errs := make([]error, len(versions))
	for i, v := range versions {
		switch {
		case deleted[v.Key]:
		case stopped != nil:
			errs[i] = stopped
		default:
			errs[i] = remove(ctx, v)
			if errs[i] != nil && !errors.Is(errs[i], syscall.ESTALE) {
				stopped = errs[i]
			}
		}
	}
	return errs
}

// deleteObjects sends DeleteObjects. It repeats only a request that S3 has certainly not performed and in which the
// server compares ETags.
func (b *Bucket) deleteObjects(ctx context.Context, in *types.Delete) (out *s3.DeleteObjectsOutput, err error) {
	for t := newTries(ctx, false); ; {
		out, err = attempt(ctx, t, listTimeout, func(ctx context.Context) (*s3.DeleteObjectsOutput, error) {
			return call(ctx, b, b.client.DeleteObjects, &s3.DeleteObjectsInput{Bucket: &b.Name, Delete: in}, withMD5)
		})
		if err == nil || !b.Profile.ConditionalBatchDelete || !s3error.NotPerformed(err) || !t.again(ctx, err) {
			return out, err
		}
	}
}

// confirmed returns the keys that S3 reports as deleted. A key that is neither in the list of deleted keys nor in the
// list of errors does not count, because the server may have done nothing.
func confirmed(out *s3.DeleteObjectsOutput) map[string]bool {
	deleted := map[string]bool{}
	if out == nil {
		return deleted
	}
	for _, d := range out.Deleted {
		deleted[aws.ToString(d.Key)] = true
	}
	for _, e := range out.Errors {
		deleted[aws.ToString(e.Key)] = false
	}
	return deleted
}
