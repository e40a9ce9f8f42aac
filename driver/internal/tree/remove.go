package tree

import (
	"cmp"
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

// RemoveFile removes a file, or the interrupted upload of one, and fails with EISDIR for a directory. The error is
// ESTALE if another client replaces the file meanwhile.
func (t *Tree) RemoveFile(ctx context.Context, key string) error {
	pending, err := t.Uploads.Remove(ctx, key)
	if err != nil {
		return err
	}
	if t.Keys.IsRoot(key) {
		return syscall.EISDIR
	}
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
	return t.deleteCurrent(ctx, v)
}

// deleteCurrent deletes a version that S3 has just described, and updates the quotas.
func (t *Tree) deleteCurrent(ctx context.Context, v s3api.Version) error {
	end := t.Quotas.Removing(v)
	err := t.Bucket.DeleteCurrent(ctx, v)
	end(err)
	return err
}

// deleteVersion deletes an object if it is still this version, and updates the quotas.
func (t *Tree) deleteVersion(ctx context.Context, v s3api.Version) error {
	end := t.Quotas.Removing(v)
	err := t.Bucket.DeleteVersion(ctx, v)
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

// RemoveAll removes a directory with everything that users have stored in it. It fails with ENOTDIR for a file, and
// does nothing if there is neither. A file with the name of the directory stays. The error is ESTALE if another client
// replaces a file meanwhile.
func (t *Tree) RemoveAll(ctx context.Context, key string) error {
	end, err := t.BeginOperation()
	if err != nil {
		return err
	}
	defer end()
	found := t.Keys.IsRoot(key)
	removed := batch{tree: t, prefix: t.Keys.Directory(key)}
	// A refusal ends the walk, but no request in flight: without its response, a deleted file would stay counted.
	err = inParallel(ctx, func(walk context.Context, submit func(func() error)) error {
		removed.submit = submit
		for v, err := range stored(t.Bucket.Walk(walk, removed.prefix)) {
			if err == nil {
				err = walk.Err()
			}
			if err == nil {
				err = removed.add(ctx, v)
			}
			if err != nil {
				return err
			}
			found = true
		}
		removed.send(ctx)
		return nil
	})
	if err != nil || found {
		return cmp.Or(err, removed.stale.cause())
	}
	switch _, err = t.File(ctx, key); {
	case err == nil:
		return syscall.ENOTDIR
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
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
