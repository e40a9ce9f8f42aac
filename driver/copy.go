package driver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
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

// copy copies a version, also of another bucket, to a key, on a condition of what the copy replaces. The copy has the attributes, and the tags and
// the encryption of the source. It returns the ETag of the copy.
//
// The error is fs.ErrExist where the condition is that there is nothing, and ESTALE where it is a version that something has replaced, or
// where something has replaced what is to be copied.
func (f *Fs) copy(ctx context.Context, v version, a *attributes, to string, c condition) (etag string, err error) {
	f.carry(a)
	p := &f.bucket.profile
	inPlace := p.InPlaceCopy && v.bucket.name == f.bucket.name && v.key == to && f.copiesAtOnce(v)
	switch always := c == (condition{}) || inPlace; {
	case f.copiesAtOnce(v) && (always || p.ConditionalCopy):
		if always {
			c = condition{}
		}
		return f.copyAtOnce(ctx, v, a, to, c)
	case always:
		return f.copyByParts(ctx, v, a, to, condition{})
	case v.size < minPartSize && p.ConditionalPut:
		return f.copyByPut(ctx, v, a, to, c)
	case p.ConditionalComplete, !f.copiesAtOnce(v):
		return f.copyByParts(ctx, v, a, to, c)
	}
	if err := f.bucket.check(ctx, to, c); err != nil {
		return "", err
	}
	return f.copyAtOnce(ctx, v, a, to, condition{})
}

// copiesAtOnce tells whether S3 copies a version by one request.
func (f *Fs) copiesAtOnce(v version) bool { return v.size <= f.opts.CopyLimit }

// copyAtOnce copies by one request, on a condition that only some servers know.
func (f *Fs) copyAtOnce(ctx context.Context, v version, a *attributes, to string, c condition) (etag string, err error) {
	in := &s3.CopyObjectInput{Key: &to, IfMatch: c.ifMatch(), IfNoneMatch: c.ifNoneMatch()}
	done := v.copied(f.bucket, to, a.metadata)
	if v.bucket.name == f.bucket.name && v.key == to {
		done = v.rewritten(a.metadata)
	}
	if a.expires == nil && !a.edited {
		a.copy(in)
	} else {
		a.replace(in) // MinIO forgets when it expires otherwise
	}
	etag, err = f.bucket.copy(ctx, v, in, done)
	if errors.Is(err, syscall.ESTALE) && c.absent && f.bucket.check(ctx, to, c) == nil {
		return "", err // it is the source that was replaced
	}
	return etag, c.failed(err)
}

// copyByPut copies a small version through this process, for servers that have conditions for what is stored and none for what is copied.
func (f *Fs) copyByPut(ctx context.Context, v version, a *attributes, to string, c condition) (etag string, err error) {
	if err := v.bucket.readTags(ctx, v.key, a); err != nil {
		return "", err
	}
	in := &s3.PutObjectInput{IfMatch: c.ifMatch(), IfNoneMatch: c.ifNoneMatch()}
	a.put(in)
	if v.size == 0 {
		etag, err = f.bucket.put(ctx, to, in, bytes.NewReader(nil))
		return etag, c.failed(err)
	}
	part := f.memory.Buffer(v.size)
	defer part.Release()
	source := span{ctx: ctx, bucket: v.bucket, version: v, end: v.size}
	defer source.close()
	if err := part.FillFrom(ctx, &source); err != nil {
		return "", err
	}
	if _, err := io.Copy(io.Discard, &source); err != nil { // the checksum, which the SDK compares behind the last byte
		return "", err
	}
	part.Seal()
	if in.ChecksumAlgorithm == "" {
		in.ChecksumCRC32C = part.Checksum()
	}
	etag, err = f.bucket.put(ctx, to, in, io.NewSectionReader(part, 0, part.Len()))
	return etag, c.failed(err)
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
	var known condition // to S3
	if err == nil {
		known, err = f.bucket.precondition(ctx, to, c, f.bucket.profile.ConditionalComplete)
		err = c.failed(err)
	}
	if err == nil {
		etag, err = m.complete(ctx, v.size, known)
		err = known.failed(err)
	}
	if err != nil {
		m.abort()
	}
	return etag, err
}

// check tells whether a condition holds now. It is for servers that have no condition for what is done next: what another client stores
// meanwhile is replaced.
func (b *bucket) check(ctx context.Context, key string, c condition) error {
	_, err := b.precondition(ctx, key, c, false)
	return c.failed(err)
}

// copy copies a version by one request, which done shows to be done. It returns the ETag of the copy.
func (b *bucket) copy(ctx context.Context, v version, in *s3.CopyObjectInput, done shown) (etag string, err error) {
	in.Bucket, in.CopySource, in.CopySourceIfMatch = &b.name, v.copySource(), condition{etag: v.etag}.ifMatch()
	tries := attempts{begun: time.Now()}
	out, err := b.client.CopyObject(ctx, in, tries.counted)
	switch {
	case err != nil:
	case out.CopyObjectResult == nil || out.CopyObjectResult.ETag == nil:
		err = s3errors.ErrNoResult
	default:
		return *out.CopyObjectResult.ETag, nil
	}
	return b.settle(ctx, *in.Key, &tries, err, done)
}

// copySource names an object in a header, in percent-encoding (RFC 3986 section 2.1).
func (v version) copySource() *string {
	source := v.bucket.name + "/" + keys.PercentEncode(v.key)
	return &source
}

// Chtimes sets the modification time of a file; S3 has no other time. S3 copies the object onto itself to keep it, in the user
// metadata that rclone reads too. It fails with errors.ErrUnsupported for a directory, and with ESTALE where the file is replaced
// meanwhile: then it stays as it is.
//
// Where S3 has no condition for the copy ([Profile]) the file goes through this process if it is smaller than a part, and is copied by
// parts otherwise. A server that has no conditions at all is asked right before whether the file is still the same; what is stored
// between these two requests may be replaced by the old bytes.
func (f *Fs) Chtimes(name string, _, mtime time.Time) error {
	key, err := f.keys.Key(name)
	if err == nil {
		err = f.chtimes(key, mtime)
	}
	return s3errors.PathError("chtimes", name, err)
}

func (f *Fs) chtimes(key string, mtime time.Time) error {
	if f.keys.IsRoot(key) {
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
	a.metadata, a.edited = metadata, true
	_, err = f.copy(f.ctx, v, &a, key, condition{etag: v.etag})
	return err
}
