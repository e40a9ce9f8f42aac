package tree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/download"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// copy copies a version, also of another bucket, to a key, on a condition of what the copy replaces. The copy has the attributes, and the tags and
// the encryption of the source. It returns the ETag of the copy.
//
// The error is fs.ErrExist where the condition is that there is nothing, and ESTALE where it is a version that something has replaced, or
// where something has replaced what is to be copied.
func (f *Tree) copy(ctx context.Context, v s3api.Version, a *attributes.Attributes, to string, c s3api.Condition) (etag string, err error) {
	f.Objects.Inherit(a)
	p := &f.Bucket.Profile
	inPlace := p.InPlaceCopy && v.Bucket.Name == f.Bucket.Name && v.Key == to && f.copiesAtOnce(v)
	switch always := c == (s3api.Condition{}) || inPlace; {
	case f.copiesAtOnce(v) && (always || p.ConditionalCopy):
		if always {
			c = s3api.Condition{}
		}
		return f.Bucket.Copy(ctx, v, a, to, c)
	case always:
		return f.Uploads.CopyByParts(ctx, v, a, to, s3api.Condition{})
	case v.Size < s3api.MinPartSize && p.ConditionalPut:
		return f.copyByPut(ctx, v, a, to, c)
	case p.ConditionalComplete, !f.copiesAtOnce(v):
		return f.Uploads.CopyByParts(ctx, v, a, to, c)
	}
	if err := f.Bucket.CheckCondition(ctx, to, c); err != nil {
		return "", err
	}
	return f.Bucket.Copy(ctx, v, a, to, s3api.Condition{})
}

// copiesAtOnce tells whether S3 copies a version by one request.
func (f *Tree) copiesAtOnce(v s3api.Version) bool { return v.Size <= f.CopyLimit }

// copyByPut copies a small version through this process, for servers that have conditions for what is stored and none for what is copied.
func (f *Tree) copyByPut(ctx context.Context, v s3api.Version, a *attributes.Attributes, to string, c s3api.Condition) (etag string, err error) {
	if err := v.Bucket.ReadTags(ctx, v.Key, a); err != nil {
		return "", err
	}
	if v.Size == 0 {
		etag, err = f.Bucket.Put(ctx, to, a, c, bytes.NewReader(nil), nil)
		return etag, c.Failed(err)
	}
	part := f.Memory.Buffer(v.Size)
	defer part.Release()
	source := download.NewRange(ctx, v.Bucket, v, 0, v.Size)
	defer source.Close()
	if err := part.FillFrom(ctx, source); err != nil {
		return "", err
	}
	if _, err := io.Copy(io.Discard, source); err != nil { // the checksum, which the SDK compares behind the last byte
		return "", err
	}
	part.Seal()
	etag, err = f.Bucket.Put(ctx, to, a, c, io.NewSectionReader(part, 0, part.Len()), part.Checksum())
	return etag, c.Failed(err)
}

// SetTime sets the modification time of a file. S3 copies the object onto itself.
func (f *Tree) SetTime(ctx context.Context, key string, mtime time.Time) error {
	if f.Keys.IsRoot(key) {
		return errors.ErrUnsupported
	}
	v, a, err := f.Bucket.Head(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = f.Dir(ctx, key); err == nil {
			err = errors.ErrUnsupported
		}
	}
	if err != nil {
		return err
	}
	a.SetMTime(mtime)
	_, err = f.copy(ctx, v, &a, key, s3api.Condition{ETag: v.ETag})
	return err
}
