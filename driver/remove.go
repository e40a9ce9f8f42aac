package driver

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"
)

// treeConcurrency is how many objects of a directory are copied or deleted at a time. They are small requests to S3, which spend
// their time waiting.
const treeConcurrency = 16

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
	_, err := f.statFile(key)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = f.statDir(key); err == nil {
			err = syscall.EISDIR
		}
	}
	if err != nil {
		return err
	}
	return f.bucket.delete(f.ctx, key)
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
		if err := f.bucket.delete(f.ctx, key); err != nil {
			return err
		}
	}
	return inParallel(f.ctx, func(ctx context.Context, submit func(func() error)) error {
		for v, err := range f.bucket.walk(ctx, f.keys.directory(key)) {
			if err == nil {
				err = f.bucket.deleteNext(ctx, v.key, submit)
			}
			if err != nil {
				return err
			}
		}
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

// deleteNext deletes an object of a directory that is walked through, a marker before it returns: versitygw leaves an empty
// directory behind when the marker goes together with the last file.
func (b *bucket) deleteNext(ctx context.Context, key string, submit func(func() error)) error {
	if strings.HasSuffix(key, separator) {
		return b.delete(ctx, key)
	}
	submit(func() error { return b.delete(ctx, key) })
	return nil
}

// delete deletes an object, one by a request: DeleteObjects, for many, loses keys with control characters on some servers, as
// they come in XML. Nothing is deleted twice, so that nothing is there is no error.
func (b *bucket) delete(ctx context.Context, key string) error {
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: &key})
	if err = fromS3(err); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
