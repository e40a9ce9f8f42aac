package driver

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// copyConcurrency is how many parts of one object S3 copies at a time. They cost this process nothing.
const copyConcurrency = 16

// minCopyPart is how much of an object is copied by one request at least, where there is so much: S3 does that within seconds.
const minCopyPart = 128 << 20

// Copy copies a file or, where there is none of the name, a directory, with all that Rename would take along and by the same rules; what is
// copied stays. A directory that was copied in part, by an attempt that was interrupted, is completed. The end of ctx ends the copying.
func (f *Fs) Copy(ctx context.Context, oldname, newname string) error {
	return f.CopyTo(ctx, f, oldname, newname)
}

// CopyTo is [Fs.Copy] to a name in another file system, which must be of the same account of the same S3 server.
func (f *Fs) CopyTo(ctx context.Context, target *Fs, oldname, newname string) error {
	return relocate("copy", oldname, newname, relocation{f: f.within(ctx), target: target.within(ctx), keepsSource: true})
}

// copy copies a version, also of another bucket, to a key, with its attributes, its tags and its encryption, and without reading it. It
// returns the ETag of the copy.
func (f *Fs) copy(ctx context.Context, v version, a *attributes, to string) (etag string, err error) {
	f.carry(a)
	switch {
	case f.opts.NoOverwrite:
		return f.copyToNew(ctx, v, a, to)
	case v.size > f.opts.CopyLimit:
		return f.copyByParts(ctx, v, a, to, condition{})
	}
	in := &s3.CopyObjectInput{Key: &to}
	if a.expires == nil {
		a.copy(in)
	} else {
		a.replace(in) // MinIO forgets it otherwise
	}
	return f.bucket.copy(ctx, v, in, v.copied(a.metadata))
}

// rewrite copies a version onto itself with other attributes.
func (f *Fs) rewrite(ctx context.Context, v version, a *attributes) error {
	f.carry(a)
	if v.size > f.opts.CopyLimit {
		_, err := f.copyByParts(ctx, v, a, v.key, condition{})
		return err
	}
	in := &s3.CopyObjectInput{Key: &v.key}
	a.replace(in)
	_, err := f.bucket.copy(ctx, v, in, v.rewritten(a.metadata))
	return err
}

// copyByParts copies a version that is too large for one request, or on a condition. It returns the ETag of the copy.
func (f *Fs) copyByParts(ctx context.Context, v version, a *attributes, to string, c condition) (etag string, err error) {
	if err := v.bucket.readTags(ctx, v.key, a); err != nil {
		return "", err
	}
	m, err := f.startMultipart(ctx, to, a)
	if err != nil {
		return "", err
	}
	err = f.addAll(ctx, m, v)
	if waitErr := m.wait(); err == nil {
		err = waitErr
	}
	if err == nil {
		etag, err = m.complete(ctx, v.size, c)
	}
	if err != nil {
		m.abort()
	}
	return etag, err
}

// copy copies a version by one request, which done shows to be done. It returns the ETag of the copy.
func (b *bucket) copy(ctx context.Context, v version, in *s3.CopyObjectInput, done shown) (etag string, err error) {
	in.Bucket, in.CopySource, in.CopySourceIfMatch = &b.name, v.copySource(), condition{etag: v.etag}.ifMatch()
	tries := attempts{begun: time.Now()}
	out, err := b.client.CopyObject(ctx, in, tries.counted)
	switch {
	case err != nil:
	case out.CopyObjectResult == nil || out.CopyObjectResult.ETag == nil:
		err = errNoResult
	default:
		return *out.CopyObjectResult.ETag, nil
	}
	return b.settle(ctx, *in.Key, &tries, err, done)
}

// copySource names an object in a header, in percent-encoding (RFC 3986 section 2.1).
func (v version) copySource() *string {
	source := v.bucket.name + "/" + percentEncode(v.key)
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
