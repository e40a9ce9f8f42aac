package driver

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
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// Copy copies a file or, where there is none of the name, a directory, with all that Rename would take along and by the same rules; what is
// copied stays. A directory that was copied in part, by an attempt that was interrupted, is completed. The end of ctx ends the copying.
func (f *Fs) Copy(ctx context.Context, oldname, newname string) error {
	return f.CopyTo(ctx, f, oldname, newname)
}

// CopyTo is [Fs.Copy] to a name in another file system, which must be of the same account of the same S3 server.
func (f *Fs) CopyTo(ctx context.Context, target *Fs, oldname, newname string) error {
	return move("copy", oldname, newname, treeMove{f: f.WithContext(ctx), target: target.WithContext(ctx), keepsSource: true})
}

// copy copies a version, also of another bucket, to a key, on a condition of what the copy replaces. The copy has the attributes, and the tags and
// the encryption of the source. It returns the ETag of the copy.
//
// The error is fs.ErrExist where the condition is that there is nothing, and ESTALE where it is a version that something has replaced, or
// where something has replaced what is to be copied.
func (f *Fs) copy(ctx context.Context, v s3api.Version, a *attributes.Attributes, to string, c s3api.Condition) (etag string, err error) {
	f.opts.Objects.Inherit(a)
	p := &f.bucket.Profile
	inPlace := p.InPlaceCopy && v.Bucket.Name == f.bucket.Name && v.Key == to && f.copiesAtOnce(v)
	switch always := c == (s3api.Condition{}) || inPlace; {
	case f.copiesAtOnce(v) && (always || p.ConditionalCopy):
		if always {
			c = s3api.Condition{}
		}
		return f.bucket.Copy(ctx, v, a, to, c)
	case always:
		return f.uploads.CopyByParts(ctx, v, a, to, s3api.Condition{})
	case v.Size < s3api.MinPartSize && p.ConditionalPut:
		return f.copyByPut(ctx, v, a, to, c)
	case p.ConditionalComplete, !f.copiesAtOnce(v):
		return f.uploads.CopyByParts(ctx, v, a, to, c)
	}
	if err := f.bucket.CheckCondition(ctx, to, c); err != nil {
		return "", err
	}
	return f.bucket.Copy(ctx, v, a, to, s3api.Condition{})
}

// copiesAtOnce tells whether S3 copies a version by one request.
func (f *Fs) copiesAtOnce(v s3api.Version) bool { return v.Size <= f.opts.CopyLimit }

// copyByPut copies a small version through this process, for servers that have conditions for what is stored and none for what is copied.
func (f *Fs) copyByPut(ctx context.Context, v s3api.Version, a *attributes.Attributes, to string, c s3api.Condition) (etag string, err error) {
	if err := v.Bucket.ReadTags(ctx, v.Key, a); err != nil {
		return "", err
	}
	if v.Size == 0 {
		etag, err = f.bucket.Put(ctx, to, a, c, bytes.NewReader(nil), nil)
		return etag, c.Failed(err)
	}
	part := f.memory.Buffer(v.Size)
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
	etag, err = f.bucket.Put(ctx, to, a, c, io.NewSectionReader(part, 0, part.Len()), part.Checksum())
	return etag, c.Failed(err)
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
	v, a, err := f.bucket.Head(f.ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = f.find.Dir(f.ctx, key); err == nil {
			err = errors.ErrUnsupported
		}
	}
	if err != nil {
		return err
	}
	a.SetMTime(mtime)
	_, err = f.copy(f.ctx, v, &a, key, s3api.Condition{ETag: v.ETag})
	return err
}
