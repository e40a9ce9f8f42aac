package tree

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/quota"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

const (
	// treeConcurrency is how many requests a directory is copied or deleted by at a time. They are small, and spend their time
	// waiting for S3.
	treeConcurrency = 32

	// maxBatch is how many objects S3 deletes by one request.
	maxBatch = 1000
)

// RemoveFile removes a file, or the interrupted upload of one, and fails with EISDIR for a directory.
func (f *Tree) RemoveFile(ctx context.Context, key string) error {
	kept, err := f.Uploads.Remove(ctx, key)
	if err != nil {
		return err
	}
	info, err := f.File(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		if kept {
			return nil
		}
		if _, err = f.Dir(ctx, key); err == nil {
			err = syscall.EISDIR
		}
	}
	if err != nil {
		return err
	}
	return f.delete(ctx, key, info.Size())
}

// delete deletes an object of so many bytes.
func (f *Tree) delete(ctx context.Context, key string, size int64) error {
	err := f.Bucket.Delete(ctx, key)
	if err == nil {
		f.Quotas.Add(-quota.Charged(key, size))
	}
	return err
}

// RemoveDir removes an empty directory, and fails with ENOTEMPTY or ENOTDIR for others.
func (f *Tree) RemoveDir(ctx context.Context, key string) error {
	if f.Keys.IsRoot(key) {
		return s3errors.ErrInvalid
	}
	marker := f.Keys.Directory(key)
	page, err := f.Bucket.List(ctx, s3api.Listing{Prefix: marker, Limit: 2}) // the marker and one that would be too many
	if err != nil {
		return err
	}
	if page.Empty() {
		if _, err = f.File(ctx, key); err == nil {
			err = syscall.ENOTDIR
		}
		return err
	}
	if len(page.Versions) != 1 || page.Versions[0].Key != marker || page.Unreadable > 0 || page.Next != "" || page.Versions[0].Size > 0 {
		return syscall.ENOTEMPTY
	}
	_, err = f.Bucket.DeleteCurrent(ctx, page.Versions[0])
	if errors.Is(err, syscall.ESTALE) {
		return syscall.ENOTEMPTY // the marker has content now
	}
	return err
}

// RemoveAll removes a file and a directory of the key with all that it holds.
func (f *Tree) RemoveAll(ctx context.Context, key string) error {
	if !f.Keys.IsRoot(key) {
		if err := f.delete(ctx, key, f.Quotas.SizeOf(ctx, f.Bucket, key)()); err != nil {
			return err
		}
	}
	return inParallel(ctx, func(ctx context.Context, submit func(func() error)) error {
		removed := batch{f: f, submit: submit}
		for v, err := range f.Bucket.Walk(ctx, f.Keys.Directory(key)) {
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

// inParallel runs what walk submits, several at a time, and returns the first error.
func inParallel(ctx context.Context, walk func(ctx context.Context, submit func(func() error)) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(treeConcurrency)
	walkErr := walk(ctx, group.Go)
	if err := group.Wait(); err != nil {
		return err // it also ended the walk, if that failed too
	}
	return walkErr
}

// A batch collects the objects of a directory that is walked through, to delete as many by one request as S3 takes.
type batch struct {
	f      *Tree
	submit func(func() error) // runs a request beside the walk
	keys   []s3api.Version    // to delete by the next request
	walked string             // the last key that was added, by whichever request it is deleted

	// exact says that the versions which are added are meant, and not whatever has their keys when S3 deletes them. Then replaced tells
	// whether something has replaced one of them, which stays.
	exact    bool
	prefix   string // of all keys, where it is exact
	listed   bool   // all versions come from one listing, and nothing was deleted since
	after    string // the key before the first that waits
	replaced atomic.Bool
}

// add deletes an object, soon or by send at the latest.
//
// Where a request may not hold markers and files, a marker is deleted before it returns. Keys that XML cannot hold go one by one: the SDK
// would write other characters in their place.
func (b *batch) add(ctx context.Context, v s3api.Version) error {
	before := b.walked
	b.walked = v.Key
	profile := &b.f.Bucket.Profile
	switch {
	case !profile.BatchDeletesMarkers && strings.HasSuffix(v.Key, keys.Separator):
		b.listed = false
		return b.one(ctx, v)
	case !b.takesMany() || !keys.IsXMLText(v.Key):
		b.listed = false
		b.submit(func() error { return b.one(ctx, v) })
	default:
		if len(b.keys) == 0 {
			b.after = before
		}
		if b.keys = append(b.keys, v); len(b.keys) == maxBatch {
			b.send(ctx)
		}
	}
	return nil
}

// takesMany tells whether S3 deletes many objects by one request. Where exact versions are meant and it compares their ETags by requests for
// one object only, it does not. Without conditions a sorted listing shows right before what is there.
func (b *batch) takesMany() bool {
	p := &b.f.Bucket.Profile
	if !b.exact {
		return p.BatchDelete
	}
	return p.BatchDelete && (p.ConditionalBatchDelete || !p.ConditionalDelete && p.SortedListings)
}

// one deletes an object by a request of its own.
func (b *batch) one(ctx context.Context, v s3api.Version) error {
	if !b.exact {
		return b.f.delete(ctx, v.Key, v.Size)
	}
	err := b.f.Bucket.DeleteVersion(ctx, v)
	if err == nil {
		b.f.Quotas.Add(-v.Size)
	}
	return b.note(err)
}

// note keeps in mind that a version was replaced, and returns other errors.
func (b *batch) note(err error) error {
	if errors.Is(err, syscall.ESTALE) {
		b.replaced.Store(true)
		return nil
	}
	return err
}

// send deletes what is left.
func (b *batch) send(ctx context.Context) {
	versions, after, listed := b.keys, b.after, b.listed
	b.listed = false
	b.keys = nil
	if len(versions) == 0 {
		return
	}
	b.submit(func() error {
		var bytes int64
		var err error
		if b.exact {
			if listed {
				bytes, err = b.f.Bucket.DeleteListed(ctx, versions)
			} else {
				bytes, err = b.f.Bucket.DeleteVersions(ctx, b.prefix, after, versions)
			}
		} else if err = b.f.Bucket.DeleteAll(ctx, versions); err == nil {
			bytes = s3api.SizeOfAll(versions)
		}
		b.f.Quotas.Add(-bytes)
		return b.note(err)
	})
}
