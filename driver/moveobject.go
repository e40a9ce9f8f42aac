package driver

import (
	"context"
	"io/fs"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// MoveObject moves one object in the same way as [Fs.RenameTo]: a file, or the marker of a directory if both names end
// with a slash. It replaces nothing. The error is fs.ErrExist if the new name is a file, unless an interrupted
// MoveObject or RenameTo has copied it from this object; then MoveObject completes the move. A directory that already
// has a marker keeps it. Canceling ctx stops the move.
func (f *Fs) MoveObject(ctx context.Context, oldname, newname string) error {
	return f.move(ctx, "rename", f, oldname, newname, func(ctx context.Context, oldName, newName entryName) error {
		oldKey, newKey := oldName.key, newName.key
		if f.keys.IsRoot(oldKey) || f.keys.IsRoot(newKey) || oldName.directory != newName.directory {
			return s3error.ErrInvalid
		}
		defer f.beginChange(oldName, newName)()
		if oldName.directory {
			oldKey, newKey = f.keys.Directory(oldKey), f.keys.Directory(newKey)
		}
		end, err := f.opts.Endpoint.moves.begin(ctx, [2]string{
			f.bucket.Name + s3object.Separator + oldKey, f.bucket.Name + s3object.Separator + newKey,
		}, false)
		if err != nil {
			return err
		}
		defer end()
		v, a, age, err := f.bucket.HeadExact(ctx, s3api.Version{Key: oldKey})
		move := &treeMove{source: f, target: f, noOverwrite: true}
		switch {
		case err != nil:
			return err
		case !oldName.directory:
			return move.file(ctx, v, &a, age, newKey)
		case !isMarker(v):
			return s3error.New(fs.ErrExist, "the marker of the directory has content")
		}
		if err = move.copyMarker(ctx, v, &a, newKey); err != nil {
			return err
		}
		return f.deleteVersion(ctx, v)
	})
}

// IsMoving reports whether [Fs.MoveObject] would complete an interrupted move of a file to a name that exists.
func (f *Fs) IsMoving(ctx context.Context, oldname, newname string) (moving bool, err error) {
	err = f.move(ctx, "rename", f, oldname, newname, func(ctx context.Context, oldName, newName entryName) error {
		v, _, _, err := f.bucket.HeadExact(ctx, s3api.Version{Key: oldName.key})
		if err != nil {
			return err
		}
		made, _, err := f.bucket.Head(ctx, newName.key)
		moving = err == nil && made.IsStampedCopyOf(&v)
		return err
	})
	return moving, err
}
