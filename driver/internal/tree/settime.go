package tree

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// SetTime sets the modification time of a file. S3 copies the object onto itself. No rename of this process begins or
// ends meanwhile: most often the ETag stays the same, and a rename that has copied the file before would delete it.
func (t *Tree) SetTime(ctx context.Context, key string, mtime time.Time) error {
	if t.Keys.IsRoot(key) {
		return errors.ErrUnsupported
	}
	name := t.Bucket.Name + s3object.Separator + key
	end, err := t.Moves.begin(ctx, [2]string{name, name}, true)
	if err != nil {
		return err
	}
	defer end()
	v, a, _, err := t.Bucket.HeadExact(ctx, s3api.Version{Key: key})
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = t.Dir(ctx, key); err == nil {
			err = errors.ErrUnsupported
		}
	}
	if err != nil {
		return err
	}
	a.SetMTime(mtime)
	change := t.Quotas.Change(key)
	change.Saw(v)
	change.Send(v.Size)
	made, err := t.copy(ctx, v, &a, key, v.Unchanged())
	change.End(err)
	if err != nil {
		return err
	}
	return t.Bucket.CheckMetadata(ctx, key, made)
}
