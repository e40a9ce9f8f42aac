package tree

import (
	"context"
	"io/fs"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// MoveObject moves one object: a file, or the marker of a directory. If the new name exists, the error is fs.ErrExist,
// unless that object is the copy that an interrupted move of this object has made. A directory that already has a
// marker keeps it.
func (t *Tree) MoveObject(ctx context.Context, oldName, newName Name) error {
	oldKey, newKey := oldName.Key, newName.Key
	if t.Keys.IsRoot(oldKey) || t.Keys.IsRoot(newKey) || oldName.Directory != newName.Directory {
		return s3error.ErrInvalid
	}
	if oldName.Directory {
		oldKey, newKey = t.Keys.Directory(oldKey), t.Keys.Directory(newKey)
	}
	keeping := *t
	keeping.NoOverwrite = true
	move := &treeMove{source: &keeping, target: &keeping}
	end, err := t.Moves.begin(ctx, [2]string{
		t.Bucket.Name + s3object.Separator + oldKey, t.Bucket.Name + s3object.Separator + newKey,
	}, false)
	if err != nil {
		return err
	}
	defer end()
	v, a, age, err := t.Bucket.HeadExact(ctx, s3api.Version{Key: oldKey})
	switch {
	case err != nil:
		return err
	case !oldName.Directory:
		return move.file(ctx, v, &a, age, newKey)
	case !isMarker(v):
		return s3error.New(fs.ErrExist, "the marker of the directory has content")
	}
	if err = move.copyMarker(ctx, v, &a, newKey); err != nil {
		return err
	}
	return t.deleteVersion(ctx, v)
}

// IsMoving reports whether the file at a new key is the copy that an interrupted move of another file has made.
func (t *Tree) IsMoving(ctx context.Context, oldKey, newKey string) (bool, error) {
	v, _, _, err := t.Bucket.HeadExact(ctx, s3api.Version{Key: oldKey})
	if err != nil {
		return false, err
	}
	made, _, err := t.Bucket.Head(ctx, newKey)
	return err == nil && made.IsStampedCopyOf(&v), err
}
