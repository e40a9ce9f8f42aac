package driver

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// copy copies a version to another key, with its attributes and without reading it.
func (f *Fs) copy(ctx context.Context, v version, to string) error {
	if v.size > f.opts.CopyLimit {
		_, a, err := f.bucket.head(ctx, v.key)
		if err != nil {
			return err
		}
		return f.copyByParts(ctx, v, &a, to)
	}
	return f.bucket.copy(ctx, v, &s3.CopyObjectInput{Key: &to, StorageClass: v.class})
}

// rewrite copies a version onto itself with other attributes.
func (f *Fs) rewrite(ctx context.Context, v version, a *attributes) error {
	if v.size > f.opts.CopyLimit {
		return f.copyByParts(ctx, v, a, v.key)
	}
	in := &s3.CopyObjectInput{Key: &v.key}
	a.replace(in)
	return f.bucket.copy(ctx, v, in)
}

func (f *Fs) copyByParts(ctx context.Context, v version, a *attributes, to string) error {
	m, err := f.startMultipart(ctx, to, a)
	if err != nil {
		return err
	}
	// Twice the smallest part, so that equal parts are none too small however an object divides.
	size := min(max(f.opts.CopyLimit, 2*minPartSize), copyPartSize)
	err = m.copy(v, v.size, size)
	if waitErr := m.wait(); err == nil {
		err = waitErr
	}
	if err == nil {
		err = m.complete(ctx, condition{})
	}
	if err != nil {
		m.abort()
	}
	return err
}

// copy copies a version by one request.
func (b *bucket) copy(ctx context.Context, v version, in *s3.CopyObjectInput) error {
	in.Bucket, in.CopySource, in.CopySourceIfMatch = &b.name, b.copySource(v.key), condition{etag: v.etag}.ifMatch()
	out, err := b.client.CopyObject(ctx, in)
	if err != nil {
		return fromS3(err)
	}
	if out.CopyObjectResult == nil || out.CopyObjectResult.ETag == nil {
		return fault(syscall.EIO, "CopyObject answered without a result")
	}
	return nil
}

// copySource names an object in a header, in percent-encoding (RFC 3986 section 2.1).
func (b *bucket) copySource(key string) *string {
	source := b.name + "/" + percentEncode(key)
	return &source
}

// Chtimes sets the modification time of a file; S3 has no other time. S3 copies the object onto itself to keep it, in the user
// metadata that rclone reads too. It fails with errors.ErrUnsupported for a directory.
func (f *Fs) Chtimes(name string, _, mtime time.Time) error {
	key, err := f.keys.key(name)
	if err == nil {
		err = f.chtimes(key, mtime)
	}
	return pathError("chtimes", name, err)
}

func (f *Fs) chtimes(key string, mtime time.Time) error {
	if f.keys.isRoot(key) {
		return errors.ErrUnsupported
	}
	v, a, err := f.bucket.head(f.ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = f.statDir(key); err == nil {
			err = errors.ErrUnsupported
		}
	}
	if err != nil {
		return err
	}
	metadata := maps.Clone(a.metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[mtimeKey] = formatMtime(mtime)
	a.metadata = metadata
	return f.rewrite(f.ctx, v, &a)
}
