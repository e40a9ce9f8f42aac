package driver

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
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
// empty, so it takes two requests.
func (f *Fs) RemoveDir(name string) error { return f.remove(name, f.removeDir) }

// RemoveAll removes a file and a directory of the name with all that it holds. Where there is neither it does nothing. When it
// fails some of it may be gone; it can be run again.
func (f *Fs) RemoveAll(name string) error { return f.remove(name, f.removeAll) }

func (f *Fs) remove(name string, remove func(key string) error) error {
	key, err := f.keys.key(name)
	if err == nil {
		err = remove(key)
	}
	return pathError("remove", name, err)
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
	if f.keys.isRoot(key) {
		return errInvalid
	}
	marker := f.keys.directory(key)
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
	if len(page.versions) != 1 || page.versions[0].key != marker || page.unreadable > 0 || page.next != "" {
		return syscall.ENOTEMPTY
	}
	return f.bucket.delete(f.ctx, marker)
}

func (f *Fs) removeAll(key string) error {
	if !f.keys.isRoot(key) {
		if err := f.delete(f.ctx, key, f.sizeOf(f.ctx, key)()); err != nil {
			return err
		}
	}
	return inParallel(f.ctx, func(ctx context.Context, submit func(func() error)) error {
		removed := batch{f: f, submit: submit}
		for v, err := range f.bucket.walk(ctx, f.keys.directory(key)) {
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
	keys   []string
	bytes  int64 // of what has these keys
}

// add deletes an object, soon or by send at the latest.
//
// A marker is deleted before it returns: versitygw leaves an empty directory behind when the marker goes together with the last file.
// Keys that XML cannot hold go one by one: the SDK would write other characters in their place.
func (b *batch) add(ctx context.Context, v version) error {
	switch {
	case strings.HasSuffix(v.key, separator):
		return b.f.delete(ctx, v.key, v.size)
	case !isXMLText(v.key):
		b.submit(func() error { return b.f.delete(ctx, v.key, v.size) })
	default:
		b.bytes += charged(v.key, v.size)
		if b.keys = append(b.keys, v.key); len(b.keys) == maxBatch {
			b.send(ctx)
		}
	}
	return nil
}

// send deletes what is left.
func (b *batch) send(ctx context.Context) {
	keys, bytes := b.keys, b.bytes
	b.keys, b.bytes = nil, 0
	if len(keys) == 0 {
		return
	}
	b.submit(func() error {
		err := b.f.bucket.deleteAll(ctx, keys)
		if err == nil {
			b.f.opts.Quotas.add(-bytes)
		}
		return err
	})
}

// isXMLText tells whether a key comes through XML unchanged. Control characters might, but servers differ in that.
func isXMLText(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool {
		return unicode.IsControl(r) || r == '\ufffe' || r == '\uffff' || r == utf8.RuneError
	})
}

// deleteAll deletes objects by one request, and what that leaves one by one, whose errors tell more. Some servers do not know
// DeleteObjects, and some want a checksum with it that the SDK no longer sends.
func (b *bucket) deleteAll(ctx context.Context, keys []string) error {
	in := &types.Delete{Quiet: aws.Bool(true), Objects: make([]types.ObjectIdentifier, len(keys))}
	for i := range keys {
		in.Objects[i].Key = &keys[i]
	}
	out, err := b.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &b.name, Delete: in}, repeatable)
	switch err = fromS3(err); {
	case err == nil:
		keys = nil
		for _, refused := range out.Errors {
			keys = append(keys, aws.ToString(refused.Key))
		}
	case errors.Is(err, syscall.EAGAIN) || ctx.Err() != nil:
		return err
	}
	for _, key := range keys {
		if err := b.delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes an object. Nothing is deleted twice, so that nothing is there is no error.
func (b *bucket) delete(ctx context.Context, key string) error {
	return b.deleteBy(ctx, key, &attempts{})
}

// deleteBy is delete by attempts that are counted.
func (b *bucket) deleteBy(ctx context.Context, key string, tries *attempts) error {
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: &key}, tries.counted)
	if err != nil {
		_, err = b.settle(ctx, key, tries, err, deleted)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
