package driver

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

const (
	// treeConcurrency is how many requests a directory is copied or deleted by at a time. They are small, and spend their time
	// waiting for S3.
	treeConcurrency = 32

	// maxBatch is how many objects S3 deletes by one request.
	maxBatch = 1000
)

// Remove removes a file or, where there is none of the name, an empty directory. It takes two requests for a file;
// [Fs.RemoveFile] and [Fs.RemoveDir] leave the other alone.
func (f *Fs) Remove(name string) error {
	return f.remove(name, func(key string) error {
		err := f.removeFile(key)
		if errors.Is(err, syscall.EISDIR) {
			return f.removeDir(key)
		}
		return err
	})
}

// RemoveFile removes a file, and fails with EISDIR for a directory. It takes two requests: S3 does not say whether what it
// deletes was there.
func (f *Fs) RemoveFile(name string) error { return f.remove(name, f.removeFile) }

// RemoveDir removes an empty directory, and fails with ENOTEMPTY or ENOTDIR for others. A directory without a marker is never
// empty, so it takes two requests. A marker that other software has stored bytes in is content. Where S3 has no conditional delete
// ([Profile]), bytes that are stored in the marker between both requests are lost.
func (f *Fs) RemoveDir(name string) error { return f.remove(name, f.removeDir) }

// RemoveAll removes a file and a directory of the name with all that it holds. Where there is neither it does nothing. When it
// fails some of it may be gone; it can be run again.
func (f *Fs) RemoveAll(name string) error { return f.remove(name, f.removeAll) }

func (f *Fs) remove(name string, remove func(key string) error) error {
	key, err := f.keys.Key(name)
	if err == nil {
		err = remove(key)
	}
	return s3errors.PathError("remove", name, err)
}

func (f *Fs) removeFile(key string) error {
	kept, err := f.removeUploads(key)
	if err != nil {
		return err
	}
	info, err := f.statFile(key)
	if errors.Is(err, fs.ErrNotExist) {
		if kept {
			return nil
		}
		if _, err = f.statDir(key); err == nil {
			err = syscall.EISDIR
		}
	}
	if err != nil {
		return err
	}
	return f.delete(f.ctx, key, info.size)
}

// delete deletes an object of so many bytes.
func (f *Fs) delete(ctx context.Context, key string, size int64) error {
	err := f.bucket.delete(ctx, key)
	if err == nil {
		f.opts.Quotas.add(-charged(key, size))
	}
	return err
}

func (f *Fs) removeDir(key string) error {
	if f.keys.IsRoot(key) {
		return s3errors.ErrInvalid
	}
	marker := f.keys.Directory(key)
	page, err := f.bucket.list(f.ctx, listing{prefix: marker, limit: 2}) // the marker and one that would be too many
	if err != nil {
		return err
	}
	if page.empty() {
		if _, err = f.statFile(key); err == nil {
			err = syscall.ENOTDIR
		}
		return err
	}
	if len(page.versions) != 1 || page.versions[0].key != marker || page.unreadable > 0 || page.next != "" || page.versions[0].size > 0 {
		return syscall.ENOTEMPTY
	}
	err = f.bucket.deleteSeen(f.ctx, page.versions[0], &attempts{})
	if errors.Is(err, syscall.ESTALE) {
		return syscall.ENOTEMPTY // the marker has content now
	}
	return err
}

func (f *Fs) removeAll(key string) error {
	if !f.keys.IsRoot(key) {
		if err := f.delete(f.ctx, key, f.sizeOf(f.ctx, key)()); err != nil {
			return err
		}
	}
	return inParallel(f.ctx, func(ctx context.Context, submit func(func() error)) error {
		removed := batch{f: f, submit: submit}
		for v, err := range f.bucket.walk(ctx, f.keys.Directory(key)) {
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
	f      *Fs
	submit func(func() error) // runs a request beside the walk
	keys   []version          // to delete by the next request
	walked string             // the last key that was added, by whichever request it is deleted

	// exact says that the versions which are added are meant, and not whatever has their keys when S3 deletes them. Then replaced tells
	// whether something has replaced one of them, which stays.
	exact    bool
	prefix   string // of all keys, where it is exact
	after    string // the key before the first that waits
	replaced atomic.Bool
}

// add deletes an object, soon or by send at the latest.
//
// Where a request may not hold markers and files, a marker is deleted before it returns. Keys that XML cannot hold go one by one: the SDK
// would write other characters in their place.
func (b *batch) add(ctx context.Context, v version) error {
	before := b.walked
	b.walked = v.key
	profile := &b.f.bucket.profile
	switch {
	case !profile.BatchDeletesMarkers && strings.HasSuffix(v.key, keys.Separator):
		return b.one(ctx, v)
	case !b.takesMany() || !keys.IsXMLText(v.key):
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
	p := &b.f.bucket.profile
	if !b.exact {
		return p.BatchDelete
	}
	return p.BatchDelete && (p.ConditionalBatchDelete || !p.ConditionalDelete && p.SortedListings)
}

// one deletes an object by a request of its own.
func (b *batch) one(ctx context.Context, v version) error {
	if !b.exact {
		return b.f.delete(ctx, v.key, v.size)
	}
	err := b.f.bucket.deleteVersion(ctx, v)
	if err == nil {
		b.f.opts.Quotas.add(-v.size)
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
	versions, after := b.keys, b.after
	b.keys = nil
	if len(versions) == 0 {
		return
	}
	b.submit(func() error {
		var bytes int64
		var err error
		if b.exact {
			bytes, err = b.f.bucket.deleteVersions(ctx, b.prefix, after, versions)
		} else if err = b.f.bucket.deleteAll(ctx, versions); err == nil {
			bytes = sizeOfAll(versions)
		}
		b.f.opts.Quotas.add(-bytes)
		return b.note(err)
	})
}

// deleteAll deletes whatever has the keys of some versions by one request, and what that leaves one by one, whose errors tell more. Some
// servers want a checksum with it that the SDK no longer sends.
func (b *bucket) deleteAll(ctx context.Context, versions []version) error {
	if len(versions) == 0 {
		return nil
	}
	in := &types.Delete{Quiet: aws.Bool(true), Objects: make([]types.ObjectIdentifier, len(versions))}
	keys := make([]string, len(versions))
	for i := range versions {
		keys[i] = versions[i].key
		in.Objects[i].Key = &keys[i]
	}
	out, err := b.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &b.name, Delete: in}, repeatable)
	left := keys
	switch err = s3errors.FromSDK(err); {
	case err == nil:
		left = nil
		for _, refused := range out.Errors {
			left = append(left, aws.ToString(refused.Key))
		}
	case errors.Is(err, syscall.EAGAIN) || ctx.Err() != nil:
		return err
	}
	for _, key := range left {
		if err := b.delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes whatever has a key. Nothing is deleted twice, so that nothing is there is no error.
func (b *bucket) delete(ctx context.Context, key string) error {
	var tries attempts
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: &key}, tries.counted)
	if err != nil {
		_, err = b.settle(ctx, key, &tries, err, deleted)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
