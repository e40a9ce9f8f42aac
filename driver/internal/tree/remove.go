package tree

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// maxRequests is how many requests a directory is copied or deleted by in parallel. They are small, and spend their
// time waiting for S3.
const maxRequests = 32

// RemoveFile removes a file, or the interrupted upload of one, and fails with EISDIR for a directory.
func (t *Tree) RemoveFile(ctx context.Context, key string) error {
	pending, err := t.Uploads.Remove(ctx, key)
	if err != nil {
		return err
	}
	if t.Keys.IsRoot(key) {
		return syscall.EISDIR
	}
	defer t.Quotas.Change(key).End(nil) // from before the look on, so that a count in between is noticed
	v, _, err := t.Bucket.Head(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		if pending {
			return nil
		}
		if _, err = t.Dir(ctx, key); err == nil {
			err = syscall.EISDIR
		}
	}
	if err != nil {
		return err
	}
	return t.delete(ctx, v)
}

// delete deletes the object that S3 has just described, or what has replaced it since.
func (t *Tree) delete(ctx context.Context, v s3api.Version) error {
	return t.deleteBy(ctx, v, t.Bucket.DeleteShown)
}

// deleteVersion deletes an object if it is still this version.
func (t *Tree) deleteVersion(ctx context.Context, v s3api.Version) error {
	return t.deleteBy(ctx, v, t.Bucket.DeleteVersion)
}

// deleteMade deletes an object that a request of this process has just made, if it is still that.
func (t *Tree) deleteMade(ctx context.Context, v s3api.Version) error {
	return t.deleteBy(ctx, v, t.Bucket.DeleteMade)
}

// deleteBy deletes an object by a request, and tells the quotas.
func (t *Tree) deleteBy(
	ctx context.Context, v s3api.Version, request func(context.Context, s3api.Version) error,
) error {
	end := t.Quotas.Removing(v)
	err := request(ctx, v)
	end(err)
	return err
}

// RemoveDir removes an empty directory, and fails with ENOTEMPTY or ENOTDIR for others.
func (t *Tree) RemoveDir(ctx context.Context, key string) error {
	if t.Keys.IsRoot(key) {
		return s3error.ErrInvalid
	}
	marker := t.Keys.Directory(key)
	// the marker and one that would be too many
	page, err := t.Bucket.List(ctx, s3api.Listing{Prefix: marker, Limit: 2})
	if err != nil {
		return err
	}
	if page.Empty() {
		if _, err = t.File(ctx, key); err == nil {
			err = syscall.ENOTDIR
		}
		return err
	}
	if len(page.Versions) != 1 || page.Versions[0].Key != marker || page.Unreadable > 0 || page.Next != "" ||
		page.Versions[0].Size > 0 {
		return syscall.ENOTEMPTY
	}
	err = t.Bucket.DeleteCurrent(ctx, page.Versions[0])
	if errors.Is(err, syscall.ESTALE) {
		return syscall.ENOTEMPTY // the marker has content now
	}
	return err
}

// RemoveAll removes the file and the directory with this name, and everything that users have stored below it.
func (t *Tree) RemoveAll(ctx context.Context, name Name) error {
	end, err := t.BeginOperation()
	if err != nil {
		return err
	}
	defer end()
	key := name.Key
	if !t.Keys.IsRoot(key) && !name.Directory {
		defer t.Quotas.Change(key).End(nil) // as in RemoveFile
		v, _, err := t.Bucket.Head(ctx, key)
		if err == nil {
			err = t.delete(ctx, v)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// A refusal ends the walk, and no request under way: without its answer a file that has gone would stay counted.
	return inParallel(ctx, func(walk context.Context, submit func(func() error)) error {
		removed := batch{tree: t, submit: submit}
		for v, err := range stored(t.Bucket.Walk(walk, t.Keys.Directory(key))) {
			if err == nil {
				err = walk.Err()
			}
			if err == nil {
				err = removed.add(ctx, v)
			}
			if err != nil {
				return err
			}
		}
		removed.send(ctx)
		return nil
	})
}

// inParallel runs what walk submits in parallel, and returns the first error.
func inParallel(ctx context.Context, walk func(ctx context.Context, submit func(func() error)) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxRequests)
	walkErr := walk(ctx, func(work func() error) { group.Go(func() error { return panics.Catch(work) }) })
	if err := group.Wait(); err != nil {
		return err // it also ended the walk, if that failed too
	}
	return walkErr
}
