package driver

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/quota"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// RenameTo moves a file or, if no file with this name exists, a directory to a name in target, which may be the same
// file system, or another one in the same account on the same S3 server. S3 copies each object with its metadata, tags,
// storage class and encryption. RenameTo deletes an object only after S3 has confirmed all copies. If no modification
// time was set for a file, it gets the time of the copy.
//
// A file replaces a file with the new name, unless [Options.NoOverwrite] is set. A directory can only be moved to a
// name that does not exist or to an empty directory. Otherwise the error is ENOTEMPTY, so that two directories are
// never mixed. There is one exception: an empty directory is removed if the new name is a directory with files, because
// an interrupted rename that has already moved all files looks the same. The error is EISDIR if the new name of a file
// is a directory, and ENOTDIR if the new name of a directory is a file. Moving a directory into itself fails with
// fs.ErrInvalid. Nothing happens if both names are the same.
//
// RenameTo does not roll back. After an error, some files may exist under both names, but none is lost, and the same
// RenameTo completes the move in any session. It continues only if a stamp in the user metadata proves that the file at
// the new name is the copy; equal bytes are not enough.
//
// RenameTo deletes only the versions that it has copied. A file that another client replaces at the same time stays,
// and the error is ESTALE. S3 compares ETags, so a file with the same bytes that is stored between the last check and
// the delete is deleted. Without conditional deletes ([Profile]), this applies to any file.
//
// If another client stores a file under a new name while a directory is moved, that file stays, and the error is
// ENOTEMPTY. If CopyObject does not support conditions, RenameTo checks the name right before each copy instead.
//
// An [s3error.EntryError] names the file within a directory that caused an error.
func (f *Fs) RenameTo(ctx context.Context, target *Fs, oldname, newname string) error {
	return f.move(ctx, "rename", target, oldname, newname, func(ctx context.Context, oldName, newName entryName) error {
		if err := f.changeable(); err != nil {
			return err
		}
		defer f.beginChange(oldName)()
		defer target.beginChange(newName)()
		move := treeMove{source: f, target: target, noOverwrite: target.opts.NoOverwrite}
		return move.run(ctx, oldName, newName)
	})
}

// A treeMove is a rename or, if keepsSource is set, a copy.
type treeMove struct {
	source      *Fs // file system of the old name
	target      *Fs // file system of the new name; may be the same
	keepsSource bool
	noOverwrite bool // fail if a file with the new name exists

	// The following fields are for directories.
	from, to string        // prefixes of the old and the new directory
	copied   *fingerprints // files and markers that have been copied
	stale    staleEntry    // an entry that another client has changed
}

// run performs the move. A bucket in the past counts as another bucket.
func (r *treeMove) run(ctx context.Context, oldName, newName entryName) error {
	source, target, oldKey, newKey := r.source, r.target, oldName.key, newName.key
	oneBucket := source.bucket.Name == target.bucket.Name && !source.bucket.IsPast()
	switch {
	case source.keys.IsRoot(oldKey) && oneBucket && strings.HasPrefix(newKey, oldKey):
		return s3error.ErrIntoItself
	case source.keys.IsRoot(oldKey) || target.keys.IsRoot(newKey):
		return s3error.ErrInvalid
	}
	end, err := source.opts.Endpoint.moves.begin(ctx, [2]string{
		source.bucket.Name + s3object.Separator + oldKey, target.bucket.Name + s3object.Separator + newKey,
	}, r.keepsSource)
	if err != nil {
		return err
	}
	defer end()
	if !oldName.directory {
		v, a, age, err := source.bucket.HeadExact(ctx, s3api.Version{Key: oldKey})
		switch {
		case err == nil && oneBucket && oldName == newName:
			return nil
		case err == nil && newName.directory:
			return r.fileAsDirectory(ctx, newKey)
		case err == nil:
			return r.file(ctx, v, &a, age, newKey)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	r.from, r.to = source.keys.Directory(oldKey), target.keys.Directory(newKey)
	var result error // result if the old directory exists
	switch {
	case oneBucket && oldKey == newKey:
	case oneBucket && strings.HasPrefix(r.to, r.from):
		result = s3error.ErrIntoItself
	case oneBucket && strings.HasPrefix(r.from, r.to):
		result = syscall.ENOTEMPTY
	default:
		file, _, err := target.findBoth(ctx, newKey)
		if err != nil {
			return err
		}
		if !file {
			return r.directory(ctx)
		}
		result = syscall.ENOTDIR
	}
	if _, err := source.findDir(ctx, oldKey); err != nil {
		return err
	}
	return result
}

// fileAsDirectory returns the error for renaming a file to a name with a final slash.
func (r *treeMove) fileAsDirectory(ctx context.Context, newKey string) error {
	_, err := r.target.findDir(ctx, newKey)
	switch {
	case err == nil:
		return syscall.EISDIR
	case errors.Is(err, fs.ErrNotExist):
		return syscall.ENOTDIR
	}
	return err
}

// file moves a file that S3 has just described. It replaces a file with the new name, unless noOverwrite is set. In
// that case a file with the new name is an error, unless an interrupted rename has copied it from this version.
func (r *treeMove) file(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, age time.Duration, newKey string,
) error {
	switch _, err := r.target.findDir(ctx, newKey); {
	case err == nil:
		return syscall.EISDIR
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if v.IsStamped() && age < renameTime {
		if _, err := r.target.waitForRename(ctx, &v, age, newKey); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if r.noOverwrite {
		switch old, _, oldAge, err := r.target.bucket.HeadWithAge(ctx, newKey); {
		case err == nil:
			return r.completeFile(ctx, v, old, oldAge)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if !r.keepsSource {
		r.stampCopy(v, a, newKey)
	}
	reservation := r.target.opts.Quotas.Begin(newKey)
	reservation.StartHead(ctx, r.target.bucket, newKey)
	err := r.copyVersion(ctx, v, a, newKey, s3api.Condition{Absent: r.noOverwrite}, reservation)
	if err != nil || r.keepsSource {
		return err
	}
	return r.source.deleteVersion(ctx, v)
}

// completeFile ends a move to an existing file that must stay. The error is fs.ErrExist unless the file is a copy that
// another rename has made from this version.
func (r *treeMove) completeFile(ctx context.Context, v, old s3api.Version, age time.Duration) error {
	if r.keepsSource || !old.IsStampedCopyOf(&v) {
		return fs.ErrExist
	}
	now, err := r.source.waitForRename(ctx, &old, age, v.Key)
	switch {
	case err != nil: // fs.ErrNotExist if another replica has completed its rename
		return err
	case !old.IsStampedCopyOf(&now):
		return fs.ErrExist
	}
	return r.source.deleteVersion(ctx, now)
}

// copyVersion copies a version to a key if the condition holds, and ends the reservation of that key. A rename reserves
// room only in usages that do not contain the source.
func (r *treeMove) copyVersion(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition,
	reservation *quota.Reservation,
) (err error) {
	defer func() { reservation.End(err) }()
	if r.keepsSource {
		err = reservation.Grow(ctx, v.Size)
	} else {
		err = reservation.Move(ctx, v.Size, r.source.opts.Quotas, v.Key)
	}
	if err != nil {
		return err
	}
	if err = r.target.applyRule(ctx, v, a, to); err != nil {
		return err
	}
	reservation.Send(v.Size)
	_, err = r.target.copyObject(ctx, v, a, to, c)
	return err
}
