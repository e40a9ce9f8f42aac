package driver

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// CopyTo copies a file or, if no file with this name exists, a directory to a name in target. It follows the same rules
// as [Fs.RenameTo], but the source stays. It completes a directory that an interrupted attempt has partly copied.
func (f *Fs) CopyTo(ctx context.Context, target *Fs, oldname, newname string) error {
	return f.move(ctx, "copy", target, oldname, newname, func(ctx context.Context, oldName, newName entryName) error {
		defer target.beginChange(newName)()
		move := treeMove{source: f, target: target, keepsSource: true, noOverwrite: target.opts.NoOverwrite}
		return move.run(ctx, oldName, newName)
	})
}

// copyObject copies a version, which may be in another bucket, to a key. The condition applies to the object that the
// copy replaces. The copy keeps the attributes, tags and encryption of the source.
//
// The error is fs.ErrExist if the key must not exist but does. It is ESTALE if another client has replaced the source,
// or the object that the condition describes.
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
		c = s3api.Condition{} // the condition on the source is sufficient
	}
	always := c == s3api.Condition{}
	switch {
	case atOnce && (always || p.ConditionalCopy):
		return f.copyAtOnce(ctx, v, a, to, c)
	case !always && v.Size < f.uploads.SmallestPart && p.HasConditionalPut(c.Absent):
		return f.copyByPut(ctx, v, a, to, c)
	case !atOnce, p.HasConditionalComplete(c.Absent) && v.Size > 0: // Swift accepts no empty part
		return f.uploads.CopyByParts(ctx, v, a, to, c)
	}
	return f.copyAtOnce(ctx, v, a, to, c) // checks the condition right before the copy
}

// copyAtOnce copies a version with one request. If the server ignores the tags, it stores them afterwards.
func (f *Fs) copyAtOnce(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition,
) (s3api.Result, error) {
	if f.bucket.Profile.LosesTags && f.bucket.Profile.TagRequests {
		if err := v.Bucket.ReadTags(ctx, v.Key, a); err != nil {
			return s3api.Result{}, err
		}
	}
	made, err := f.bucket.Copy(ctx, v, a, to, c)
	if err == nil {
		f.uploads.StoreTags(ctx, to, a)
	}
	return made, err
}

// applyRule adds to the attributes of a version what the rule for its new key gives.
func (f *Fs) applyRule(ctx context.Context, v s3api.Version, a *s3object.Attributes, to string) error {
	rule := f.opts.Rule(ctx, s3object.Separator+strings.TrimPrefix(to, f.opts.Prefix), Copied)
	if len(rule.Tags) > 0 {
		if err := v.Bucket.ReadTags(ctx, v.Key, a); err != nil {
			return err
		}
	}
	rule.Apply(a)
	return nil
}

// copiesAtOnce reports whether S3 can copy a version with one request.
func (f *Fs) copiesAtOnce(v s3api.Version) bool { return v.Size <= f.opts.CopyLimit }

// copyByPut downloads a small version and uploads it again, for servers that support conditions in PutObject but not in
// CopyObject.
func (f *Fs) copyByPut(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition,
) (s3api.Result, error) {
	if err := v.Bucket.ReadTags(ctx, v.Key, a); err != nil {
		return s3api.Result{}, err
	}
	if v.Size == 0 {
		made, err := f.bucket.Put(ctx, to, a, c, bytes.NewReader(nil), s3api.Sums{})
		return made, c.Failed(err)
	}
	part := f.opts.Memory.Buffer(v.Size)
	defer part.Release()
	source := file.NewRange(ctx, v.Bucket, v, 0, v.Size)
	defer source.Close()
	if err := part.FillFrom(ctx, source); err != nil {
		return s3api.Result{}, err
	}
	if _, err := io.Copy(io.Discard, source); err != nil { // the SDK verifies the checksum after the last byte
		return s3api.Result{}, err
	}
	part.Seal()
	made, err := f.bucket.Put(
		ctx, to, a, c, io.NewSectionReader(part, 0, part.Len()), s3api.Sums{CRC32C: part.Checksum()})
	return made, c.Failed(err)
}
