package tree

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

// A Name is the key of a file, or of a directory without its final slash.
type Name struct {
	Key       string
	Directory bool // the name means the directory only
}

// Rename moves a file or a directory to a name in a target, perhaps the same tree.
func (t *Tree) Rename(ctx context.Context, target *Tree, oldName, newName Name) error {
	return (&treeMove{source: t, target: target}).run(ctx, oldName, newName)
}

// Copy copies a file or a directory to a name in a target, perhaps the same tree.
func (t *Tree) Copy(ctx context.Context, target *Tree, oldName, newName Name) error {
	return (&treeMove{source: t, target: target, keepsSource: true}).run(ctx, oldName, newName)
}

// A treeMove is a rename or, if it keeps the source, a copy.
type treeMove struct {
	source      *Tree // where it begins
	target      *Tree // where it ends, perhaps the same
	keepsSource bool

	// Of a directory:
	from, to string        // the prefixes of both
	copied   *fingerprints // the files and markers that have their copies
	stale    staleEntry    // an entry that another client has changed
}

func (r *treeMove) run(ctx context.Context, oldName, newName Name) error {
	source, target, oldKey, newKey := r.source, r.target, oldName.Key, newName.Key
	oneBucket := source.Bucket.Name == target.Bucket.Name && !source.Bucket.IsPast()
	switch {
	case source.Keys.IsRoot(oldKey) && oneBucket && strings.HasPrefix(newKey, oldKey):
		return s3error.ErrIntoItself
	case source.Keys.IsRoot(oldKey) || target.Keys.IsRoot(newKey):
		return s3error.ErrInvalid
	}
	end, err := source.Moves.begin(ctx, [2]string{
		source.Bucket.Name + s3object.Separator + oldKey, target.Bucket.Name + s3object.Separator + newKey,
	}, r.keepsSource)
	if err != nil {
		return err
	}
	defer end()
	if !oldName.Directory {
		v, a, age, err := source.Bucket.HeadExact(ctx, s3api.Version{Key: oldKey})
		switch {
		case err == nil && oneBucket && oldName == newName:
			return nil
		case err == nil && newName.Directory:
			return r.fileAsDirectory(ctx, newKey)
		case err == nil:
			return r.file(ctx, v, &a, age, newKey)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	r.from, r.to = source.Keys.Directory(oldKey), target.Keys.Directory(newKey)
	var result error // if the old directory exists
	switch {
	case oneBucket && oldKey == newKey:
	case oneBucket && strings.HasPrefix(r.to, r.from):
		result = s3error.ErrIntoItself
	case oneBucket && strings.HasPrefix(r.from, r.to):
		result = syscall.ENOTEMPTY
	default:
		file, _, err := target.Both(ctx, newKey)
		if err != nil {
			return err
		}
		if !file {
			return r.directory(ctx)
		}
		result = syscall.ENOTDIR
	}
	if _, err := source.Dir(ctx, oldKey); err != nil {
		return err
	}
	return result
}

// fileAsDirectory returns the error for renaming a file to the name of a directory.
func (r *treeMove) fileAsDirectory(ctx context.Context, newKey string) error {
	_, err := r.target.Dir(ctx, newKey)
	switch {
	case err == nil:
		return syscall.EISDIR
	case errors.Is(err, fs.ErrNotExist):
		return syscall.ENOTDIR
	}
	return err
}

// file moves a file that S3 has just described. It replaces a file at the new name, unless NoOverwrite is set. Then a
// file there is an error, unless it is the copy that an interrupted rename of this version has made.
func (r *treeMove) file(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, age time.Duration, newKey string,
) error {
	switch _, err := r.target.Dir(ctx, newKey); {
	case err == nil:
		return syscall.EISDIR
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if v.IsStamped() && age < renameTime {
		if _, err := r.target.original(ctx, &v, age, newKey); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if r.target.NoOverwrite {
		switch old, _, oldAge, err := r.target.Bucket.HeadWithAge(ctx, newKey); {
		case err == nil:
			return r.completeFile(ctx, v, old, oldAge)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if !r.keepsSource {
		r.stampCopy(v, a, newKey)
	}
	change := r.target.Quotas.Change(newKey)
	change.Look(ctx, r.target.Bucket, newKey)
	err := r.copyVersion(ctx, v, a, newKey, s3api.Condition{Absent: r.target.NoOverwrite}, change)
	if err != nil || r.keepsSource {
		return err
	}
	return r.source.deleteVersion(ctx, v)
}

// completeFile ends a move to a name that has a file, which must stay. The error is fs.ErrExist unless that file is the
// copy that another rename of this version has made.
func (r *treeMove) completeFile(ctx context.Context, v, old s3api.Version, age time.Duration) error {
	if r.keepsSource || !old.IsStampedCopyOf(&v) {
		return fs.ErrExist
	}
	now, err := r.source.original(ctx, &old, age, v.Key)
	switch {
	case err != nil: // fs.ErrNotExist if another replica has completed its rename
		return err
	case !old.IsStampedCopyOf(&now):
		return fs.ErrExist
	}
	return r.source.deleteVersion(ctx, now)
}

// copyVersion copies a version to a key on a condition, and ends the change of that key. A rename takes room only in
// usages that do not contain the source.
func (r *treeMove) copyVersion(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition, change *quota.Change,
) (err error) {
	defer func() { change.End(err) }()
	if r.keepsSource {
		err = change.Grow(ctx, v.Size)
	} else {
		err = change.Move(ctx, v.Size, r.source.Quotas, v.Key)
	}
	if err != nil {
		return err
	}
	change.Send(v.Size)
	_, err = r.target.copy(ctx, v, a, to, c)
	return err
}
