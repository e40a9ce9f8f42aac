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

// maxRequests is how many requests a directory is copied or deleted by in parallel. They are small, and spend their
// time waiting for S3.
const maxRequests = 32

// RemoveFile removes a file, or the interrupted upload of one, and fails with EISDIR for a directory. The error is
// ESTALE if another client replaces the file meanwhile. It takes two requests, because S3 does not say whether what it
// deletes existed.
func (f *Fs) RemoveFile(ctx context.Context, name string) error {
	return f.changeFile(ctx, "remove", name, func(ctx context.Context, key string) (err error) {
		defer func() { f.removed(err, key) }()
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

// removed tells the journal that a key was removed, if an operation with this error may have removed something.
func (f *Fs) removed(err error, key string) {
	for _, refusal := range []error{fs.ErrNotExist, fs.ErrExist, syscall.EISDIR, syscall.ENOTDIR} {
		if errors.Is(err, refusal) {
			return
		}
	}
	f.changed(key)
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

// RemoveDir removes an empty directory, and fails with ENOTEMPTY or ENOTDIR for others. A directory without a marker
// is never empty, so it takes two requests. A marker that other software has stored bytes in is content. If S3 has no
// conditional delete ([Profile]), bytes that are stored in the marker between both requests are lost.
func (f *Fs) RemoveDir(ctx context.Context, name string) error {
	return f.change(ctx, "remove", name, func(ctx context.Context, key string) (err error) {
		if f.keys.IsRoot(key) {
			return s3error.ErrInvalid
		}
		marker := f.keys.Directory(key)
		defer func() { f.removed(err, marker) }()
		// the marker and one that would be too many
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

// RemoveAll removes a directory with everything that users have stored in it, and fails with ENOTDIR for a file. If
// there is neither, it does nothing. A file with the name of the directory stays. After an error some files may be
// gone, and RemoveAll can be called again. The error is ESTALE if another client replaces a file meanwhile, which then
// stays if S3 compares ETags.
func (f *Fs) RemoveAll(ctx context.Context, name string) error {
	return f.change(ctx, "remove", name, func(ctx context.Context, key string) (err error) {
		directory := f.keys.Directory(key)
		defer func() { f.removed(err, directory) }()
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

// removeBelow removes all objects with a prefix, and reports whether there were any. A refusal ends the walk, but no
// request in flight: without its response, a deleted file would stay counted.
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
