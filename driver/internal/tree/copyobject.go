package tree

import (
	"bytes"
	"context"
	"io"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// copy copies a version, also of another bucket, to a key, on a condition of what the copy replaces. The copy has the
// attributes, the tags and the encryption of the source.
//
// The error is fs.ErrExist where the condition is that there is nothing. It is ESTALE where something has replaced
// the source, or the version of the condition.
func (t *Tree) copy(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition,
) (s3api.Stored, error) {
	end, err := t.Uploads.BeginCopy(v.Size)
	if err != nil {
		return s3api.Stored{}, err
	}
	defer end()
	t.Objects.Inherit(a)
	p, atOnce := &t.Bucket.Profile, t.copiesAtOnce(v)
	if atOnce && p.InPlaceCopy && !v.Bucket.IsPast() && v.Bucket.Name == t.Bucket.Name && v.Key == to {
		c = s3api.Condition{} // the condition of the source is enough
	}
	always := c == s3api.Condition{}
	switch {
	case atOnce && (always || p.ConditionalCopy):
		return t.Bucket.Copy(ctx, v, a, to, c)
	case !always && v.Size < t.Uploads.SmallestPart && p.PutsOn(c.Absent):
		return t.copyByPut(ctx, v, a, to, c)
	case !atOnce, p.CompletesOn(c.Absent) && v.Size > 0: // Swift takes no empty part
		return t.Uploads.CopyByParts(ctx, v, a, to, c)
	}
	return t.Bucket.Copy(ctx, v, a, to, c) // which looks right before
}

// copiesAtOnce tells whether S3 copies a version by one request.
func (t *Tree) copiesAtOnce(v s3api.Version) bool { return v.Size <= t.CopyLimit }

// copyByPut copies a small version through this process, for servers that have conditions for what is stored and none
// for what is copied.
func (t *Tree) copyByPut(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition,
) (s3api.Stored, error) {
	if err := v.Bucket.ReadTags(ctx, v.Key, a); err != nil {
		return s3api.Stored{}, err
	}
	if v.Size == 0 {
		made, err := t.Bucket.Put(ctx, to, a, c, bytes.NewReader(nil), nil)
		return made, c.Failed(err)
	}
	part := t.Memory.Buffer(v.Size)
	defer part.Release()
	source := file.NewRange(ctx, v.Bucket, v, 0, v.Size)
	defer source.Close()
	if err := part.FillFrom(ctx, source); err != nil {
		return s3api.Stored{}, err
	}
	if _, err := io.Copy(io.Discard, source); err != nil { // the checksum, which the SDK compares behind the last byte
		return s3api.Stored{}, err
	}
	part.Seal()
	made, err := t.Bucket.Put(ctx, to, a, c, io.NewSectionReader(part, 0, part.Len()), part.Checksum())
	return made, c.Failed(err)
}
