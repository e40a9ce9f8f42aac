package driver

import (
	"bytes"
	"context"
	"io"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// CopyTo copies a file or, if there is no file with this name, a directory to a name in target, by the same rules as
// [Fs.RenameTo], and the source stays. It completes a directory that an interrupted attempt has copied in part.
func (f *Fs) CopyTo(ctx context.Context, target *Fs, oldname, newname string) error {
	return f.move(ctx, "copy", target, oldname, newname, func(ctx context.Context, oldName, newName entryName) error {
		defer target.changing(newName)()
		move := treeMove{source: f, target: target, keepsSource: true, noOverwrite: target.opts.NoOverwrite}
		return move.run(ctx, oldName, newName)
	})
}

// copyObject copies a version, also of another bucket, to a key. The condition is for what the copy replaces. The copy
// has the attributes, the tags and the encryption of the source.
//
// The error is fs.ErrExist if an object exists against the condition. It is ESTALE if another client has replaced the
// source, or the version of the condition.
func (f *Fs) copyObject(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition,
) (s3api.Result, error) {
	end, err := f.uploads.BeginCopy(v.Size)
	if err != nil {
		return s3api.Result{}, err
	}
	defer end()
	f.opts.Objects.Inherit(a)
	p, atOnce := &f.bucket.Profile, f.copiesAtOnce(v)
	if atOnce && p.InPlaceCopy && !v.Bucket.IsPast() && v.Bucket.Name == f.bucket.Name && v.Key == to {
		c = s3api.Condition{} // the condition of the source is enough
	}
	always := c == s3api.Condition{}
	switch {
	case atOnce && (always || p.ConditionalCopy):
		return f.bucket.Copy(ctx, v, a, to, c)
	case !always && v.Size < f.uploads.SmallestPart && p.PutsOn(c.Absent):
		return f.copyByPut(ctx, v, a, to, c)
	case !atOnce, p.CompletesOn(c.Absent) && v.Size > 0: // Swift takes no empty part
		return f.uploads.CopyByParts(ctx, v, a, to, c)
	}
	return f.bucket.Copy(ctx, v, a, to, c) // it checks the condition right before
}

// copiesAtOnce reports whether S3 copies a version by one request.
func (f *Fs) copiesAtOnce(v s3api.Version) bool { return v.Size <= f.opts.CopyLimit }

// copyByPut copies a small version through this process, for servers that support conditions for PutObject and not for
// CopyObject.
func (f *Fs) copyByPut(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition,
) (s3api.Result, error) {
	if err := v.Bucket.ReadTags(ctx, v.Key, a); err != nil {
		return s3api.Result{}, err
	}
	if v.Size == 0 {
		made, err := f.bucket.Put(ctx, to, a, c, bytes.NewReader(nil), nil)
		return made, c.Failed(err)
	}
	part := f.opts.Memory.Buffer(v.Size)
	defer part.Release()
	source := file.NewRange(ctx, v.Bucket, v, 0, v.Size)
	defer source.Close()
	if err := part.FillFrom(ctx, source); err != nil {
		return s3api.Result{}, err
	}
	if _, err := io.Copy(io.Discard, source); err != nil { // the SDK compares the checksum after the last byte
		return s3api.Result{}, err
	}
	part.Seal()
	made, err := f.bucket.Put(ctx, to, a, c, io.NewSectionReader(part, 0, part.Len()), part.Checksum())
	return made, c.Failed(err)
}
