package driver

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

// maxRequests is the maximum number of parallel requests to copy or delete a directory. The requests are small and
// spend their time waiting for S3.
const maxRequests = 32

// RemoveFile removes a file, or the interrupted upload of a file. It fails with EISDIR for a directory. The error is
// ESTALE if another client replaces the file at the same time. It takes two requests, because S3 does not report
// whether a deleted object existed.
func (f *Fs) RemoveFile(ctx context.Context, name string) error {
	return f.changeFile(ctx, "remove", name, func(ctx context.Context, key string) (err error) {
		defer func() { f.recordRemoval(err, key) }()
		pending, err := f.uploads.Remove(ctx, key)
		if err != nil {
			return err
		}
		if f.keys.IsRoot(key) {
			return syscall.EISDIR
		}
		v, _, err := f.bucket.Head(ctx, key)
		if errors.Is(err, fs.ErrNotExist) {
			if pending {
				return nil
			}
			if _, err = f.findDir(ctx, key); err == nil {
				err = syscall.EISDIR
			}
		}
		if err != nil {
			return err
		}
		return f.deleteCurrent(ctx, v)
	})
}

// recordRemoval reports a removed key to the journal, unless err means that the operation cannot have removed anything.
func (f *Fs) recordRemoval(err error, key string) {
	for _, refusal := range []error{fs.ErrNotExist, fs.ErrExist, syscall.EISDIR, syscall.ENOTDIR} {
		if errors.Is(err, refusal) {
			return
		}
	}
	f.recordChange(key)
}

// deleteCurrent deletes a version that S3 has just described, and updates the quotas.
func (f *Fs) deleteCurrent(ctx context.Context, v s3api.Version) error {
	end := f.opts.Quotas.Removing(v)
	err := f.bucket.DeleteCurrent(ctx, v)
	end(err)
	return err
}

// deleteVersion deletes an object if it is still this version, and updates the quotas.
func (f *Fs) deleteVersion(ctx context.Context, v s3api.Version) error {
	end := f.opts.Quotas.Removing(v)
	err := f.bucket.DeleteVersion(ctx, v)
	end(err)
	return err
}

// RemoveDir removes an empty directory. It fails with ENOTEMPTY if the directory is not empty, and ENOTDIR for a file.
// A directory without a marker is never empty, so two requests are enough. A marker in which other software has stored
// data counts as content. If S3 has no conditional delete ([Profile]), data that is stored in the marker between the
// two requests is lost.
func (f *Fs) RemoveDir(ctx context.Context, name string) error {
	return f.change(ctx, "remove", name, func(ctx context.Context, key string) (err error) {
		if f.keys.IsRoot(key) {
			return s3error.ErrInvalid
		}
		marker := f.keys.Directory(key)
		defer func() { f.recordRemoval(err, marker) }()
		// the marker, and one key that would make the directory not empty
		page, err := f.bucket.List(ctx, s3api.Listing{Prefix: marker, Limit: 2})
		if err != nil {
			return err
		}
		if page.Empty() {
			if _, err = f.findFile(ctx, key); err == nil {
				err = syscall.ENOTDIR
			}
			return err
		}
		if len(page.Versions) != 1 || page.Versions[0].Key != marker || page.Unreadable > 0 || page.Next != "" ||
			page.Versions[0].Size > 0 {
			return syscall.ENOTEMPTY
		}
		err = f.bucket.DeleteCurrent(ctx, page.Versions[0])
		if errors.Is(err, syscall.ESTALE) {
			return syscall.ENOTEMPTY // the marker has content now
		}
		return err
	})
}

// RemoveAll removes a directory with everything that users have stored in it. It fails with ENOTDIR for a file, and
// does nothing if neither exists. A file with the same name as the directory stays. After an error some files may be
// gone, and RemoveAll can be called again. The error is ESTALE if another client replaces a file at the same time; this
// file stays if S3 compares ETags.
func (f *Fs) RemoveAll(ctx context.Context, name string) error {
	return f.change(ctx, "remove", name, func(ctx context.Context, key string) (err error) {
		directory := f.keys.Directory(key)
		defer func() { f.recordRemoval(err, directory) }()
		end, err := f.opts.BeginOperation()
		if err != nil {
			return err
		}
		defer end()
		found, err := f.removeBelow(ctx, directory)
		if err != nil || found || f.keys.IsRoot(key) {
			return err
		}
		switch _, err = f.findFile(ctx, key); {
		case err == nil:
			return syscall.ENOTDIR
		case errors.Is(err, fs.ErrNotExist):
			return nil
		}
		return err
	})
}

// removeBelow removes all objects with a prefix, and reports whether there were any. An error stops the walk, but does
// not cancel requests in flight: without their responses, deleted files would remain counted in quotas.
func (f *Fs) removeBelow(ctx context.Context, prefix string) (found bool, err error) {
	removed := batch{fs: f, prefix: prefix}
	err = inParallel(ctx, func(walk context.Context, submit func(func() error)) error {
		removed.submit = submit
		for v, err := range withoutReserved(f.bucket.Walk(walk, prefix)) {
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
	return found, cmp.Or(err, removed.stale.cause())
}

// inParallel runs the functions that walk submits in parallel, and returns the first error.
func inParallel(ctx context.Context, walk func(ctx context.Context, submit func(func() error)) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxRequests)
	walkErr := walk(ctx, func(work func() error) { group.Go(func() error { return panics.Catch(work) }) })
	if err := group.Wait(); err != nil {
		return err // it also stopped the walk, if that failed too
	}
	return walkErr
}
