package driver

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/tree"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// Mkdir makes a directory by writing its marker, and fails with fs.ErrExist where there is a file or a directory of
// the name. It takes two requests. The parents need not exist.
func (f *Fs) Mkdir(ctx context.Context, name string) error {
	return f.change(ctx, "mkdir", name, f.tree.Mkdir)
}

// MkdirAll makes a directory, and its parents where they are missing. It fails with ENOTDIR where one of them is a
// file.
func (f *Fs) MkdirAll(ctx context.Context, name string) error {
	return f.change(ctx, "mkdir", name, f.tree.MkdirAll)
}

// RenameTo moves a file or, if there is no file with this name, a directory to a name in target, which may be the same
// file system, or another one of the same account of the same S3 server. S3 copies each object with its metadata,
// tags, storage class and encryption. Rename deletes an object only after S3 has confirmed all copies. A file without
// a set time gets the time of the copy.
//
// A file replaces a file with the new name, unless [Options.NoOverwrite] is set. A directory moves to a name that
// nothing has, or to an empty directory. Otherwise the error is ENOTEMPTY, so that two directories do not mix. If a
// directory has the new name of a file, the error is EISDIR. If a file has the new name of a directory, it is ENOTDIR.
// A directory moved into itself is an fs.ErrInvalid. Nothing happens if both names are the same.
//
// Rename undoes nothing. After an error, some files may have both names, none is lost, and the same Rename completes
// the move in any session. It continues only if a stamp in its user metadata proves that the file at a new name is the
// copy. Equal bytes do not.
//
// Rename deletes only the versions that it has copied. A file that another client replaces meanwhile stays, and the
// error is ESTALE. S3 compares ETags, so a file with the same bytes, stored between the last check and the delete, is
// deleted. Without conditional deletes ([Profile]), this goes for any file.
//
// If another client stores a file under a new name while a directory is moved, that file stays, and the error is
// ENOTEMPTY. If CopyObject takes no condition, Rename checks right before each copy instead.
//
// An [s3error.EntryError] names the file of a directory that an error is about.
func (f *Fs) RenameTo(ctx context.Context, target *Fs, oldname, newname string) error {
	if err := f.changeable(); err != nil {
		return s3error.LinkError("rename", oldname, newname, err)
	}
	return f.move(ctx, "rename", noting(f, target, f.tree.Rename), target, oldname, newname)
}

// MoveObject moves one object in S3, as [Fs.RenameTo] does: a file, or the marker of a directory if both names end in a
// slash. It replaces nothing. The error is fs.ErrExist if a file has the new name, unless an interrupted MoveObject or
// Rename has copied it from this object: then MoveObject completes the move. A directory keeps the marker that it has.
// Canceling ctx stops the move.
func (f *Fs) MoveObject(ctx context.Context, oldname, newname string) error {
	if err := f.changeable(); err != nil {
		return s3error.LinkError("rename", oldname, newname, err)
	}
	moveObject := func(ctx context.Context, _ *tree.Tree, oldName, newName tree.Name) error {
		return f.tree.MoveObject(ctx, oldName, newName)
	}
	return f.move(ctx, "rename", noting(f, f, moveObject), f, oldname, newname)
}

// IsMoving reports whether [Fs.MoveObject] would complete the interrupted move of a file to a name that exists.
func (f *Fs) IsMoving(ctx context.Context, oldname, newname string) (moving bool, err error) {
	err = f.move(ctx, "rename", func(ctx context.Context, _ *tree.Tree, oldName, newName tree.Name) (err error) {
		moving, err = f.tree.IsMoving(ctx, oldName.Key, newName.Key)
		return err
	}, f, oldname, newname)
	return moving, err
}

// CopyTo copies a file or, if there is no file with this name, a directory to a name in target, by the same rules as
// [Fs.RenameTo], and the source stays. It completes a directory that an interrupted attempt has copied in part.
func (f *Fs) CopyTo(ctx context.Context, target *Fs, oldname, newname string) error {
	return f.move(ctx, "copy", noting(nil, target, f.tree.Copy), target, oldname, newname)
}

// RemoveFile removes a file, and fails with EISDIR for a directory. It takes two requests: S3 does not say whether
// what it deletes was there.
func (f *Fs) RemoveFile(ctx context.Context, name string) error {
	return f.changeFile(ctx, "remove", name, func(ctx context.Context, key string) error {
		return f.removed(f.tree.RemoveFile(ctx, key), key)
	})
}

// RemoveDir removes an empty directory, and fails with ENOTEMPTY or ENOTDIR for others. A directory without a marker
// is never empty, so it takes two requests. A marker that other software has stored bytes in is content. Where S3 has
// no conditional delete ([Profile]), bytes that are stored in the marker between both requests are lost.
func (f *Fs) RemoveDir(ctx context.Context, name string) error {
	return f.change(ctx, "remove", name, func(ctx context.Context, key string) error {
		return f.removed(f.tree.RemoveDir(ctx, key), f.keys.Directory(key))
	})
}

// RemoveAll removes a directory with everything in it, and fails with ENOTDIR for a file. If there is neither, it does
// nothing. After an error some files may be gone, and RemoveAll can be called again. The error is ESTALE if another
// client replaces a file meanwhile, which then stays if S3 compares ETags.
func (f *Fs) RemoveAll(ctx context.Context, name string) error {
	return f.change(ctx, "remove", name, func(ctx context.Context, key string) error {
		return f.removed(f.tree.RemoveAll(ctx, key), f.keys.Directory(key))
	})
}

// removed tells the journal that a key was removed, if an operation with this error may have removed something, and
// returns the error.
func (f *Fs) removed(err error, key string) error {
	for _, refusal := range []error{fs.ErrNotExist, fs.ErrExist, syscall.EISDIR, syscall.ENOTDIR} {
		if errors.Is(err, refusal) {
			return err
		}
	}
	f.changed(key)
	return err
}

// SetTime sets the modification time of a file; S3 has no other time. The time is in the user metadata that rclone
// reads too, so S3 copies the object onto itself. The error is errors.ErrUnsupported for a directory. It is ESTALE
// where another client replaces the file meanwhile, which then stays as it is.
//
// Where S3 has no condition for the copy ([Profile]), a file smaller than a part goes through this process, and S3
// copies others by parts. A server without any conditions is asked right before whether the file is still the same.
// What is stored between these two requests may be replaced by the old bytes.
func (f *Fs) SetTime(ctx context.Context, name string, mtime time.Time) error {
	return f.changeFile(ctx, "chtimes", name, func(ctx context.Context, key string) error {
		return f.tree.SetTime(ctx, key, mtime)
	})
}

// changeFile runs do for the key of a file, and returns an error for the name of a directory.
func (f *Fs) changeFile(
	ctx context.Context, op, name string, do func(ctx context.Context, key string) error,
) error {
	return f.change(ctx, op, name, func(ctx context.Context, key string) error {
		if err := f.refuseDirectory(ctx, name, key); err != nil {
			return err
		}
		return do(ctx, key)
	})
}

// change does what changes the file or directory of a name.
func (f *Fs) change(
	ctx context.Context, op, name string, do func(ctx context.Context, key string) error,
) error {
	key, err := f.keys.Key(name)
	if err == nil {
		err = f.changeable()
	}
	if err == nil {
		err = do(f.opts.withRetries(ctx), key)
	}
	return s3error.PathError(op, name, err)
}

// changed tells the journal that keys have changed, unless no user of the bucket can resume uploads.
func (f *Fs) changed(keys ...string) {
	if f.opts.Owner != "" {
		f.opts.Journal.Changed(keys...)
	}
}

// A mover renames or copies a file or a directory to a name in a target.
type mover func(ctx context.Context, target *tree.Tree, oldName, newName tree.Name) error

// noting returns a mover that tells the journals of the names that it changes: those in the target and, if source is
// not nil, the old ones. It does so before and after, because a directory moves file by file, and whatever the error.
func noting(source, target *Fs, do mover) mover {
	return func(ctx context.Context, to *tree.Tree, oldName, newName tree.Name) error {
		changed := func() {
			target.changed(newName.Key, target.keys.Directory(newName.Key))
			if source != nil {
				source.changed(oldName.Key, source.keys.Directory(oldName.Key))
			}
		}
		changed()
		defer changed()
		return do(ctx, to, oldName, newName)
	}
}

// move renames or copies from one name to another.
func (f *Fs) move(ctx context.Context, op string, do mover, target *Fs, oldname, newname string) error {
	oldKey, err := f.keys.Key(oldname)
	if err == nil {
		err = target.changeable()
	}
	if err == nil {
		var newKey string
		if newKey, err = target.keys.Key(newname); err == nil {
			err = do(f.opts.withRetries(ctx), target.tree, tree.Name{Key: oldKey, Directory: namesDirectory(oldname)},
				tree.Name{Key: newKey, Directory: namesDirectory(newname)})
		}
	}
	return s3error.LinkError(op, oldname, newname, err)
}
