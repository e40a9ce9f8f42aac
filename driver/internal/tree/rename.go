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

// A treeMove is a rename or, where it keeps the source, a copy.
type treeMove struct {
	source      *Tree // where it begins
	target      *Tree // where it ends, perhaps the same
	keepsSource bool

	// Of a directory:
	from, to string        // the prefixes of both
	toIsNew  bool          // nothing was at to a moment ago
	checked  []mergeEntry  // all entries of a small directory
	copied   *fingerprints // the files and markers that have their copies
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
	defer source.Quotas.Change(oldKey).End(nil) // from before the look on, so that a count in between is noticed
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
		file, directory, err := target.Both(ctx, newKey)
		if err != nil {
			return err
		}
		if r.toIsNew = !file && !directory; !file {
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
		old, _, err := r.target.Bucket.Head(ctx, newKey)
		if err == nil {
			err = checkRenamed(&v, age, &old)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	occupied := true // possibly
	if r.target.NoOverwrite || r.source.incomplete.refused.Load() {
		switch _, err := r.target.File(ctx, newKey); {
		case errors.Is(err, fs.ErrNotExist):
			occupied = false
		case err != nil:
			return err
		}
	}
	if occupied && r.target.NoOverwrite {
		if r.keepsSource || !r.target.incomplete.has(ctx, v, newKey, r.target.Bucket) {
			return fs.ErrExist
		}
		err := r.source.deleteVersion(ctx, v)
		if err == nil {
			r.target.incomplete.remove(newKey)
		}
		return err
	}
	if !r.keepsSource {
		r.stampCopy(v, a, newKey)
	}
	c := s3api.Condition{Absent: r.target.NoOverwrite}
	change := r.target.Quotas.Change(newKey)
	change.Look(ctx, r.target.Bucket, newKey)
	made, err := r.copyVersion(ctx, v, a, newKey, c, change)
	if !occupied {
		r.removeWrongCopy(ctx, newKey, made, err)
	}
	if err != nil || r.keepsSource {
		return err
	}
	return r.deleteSource(ctx, v, newKey, made, occupied)
}

// copyVersion copies a version to a key on a condition, and ends the change of that key. It returns the copy also if
// that may be one of a later version.
//
// A rename takes room only in usages that do not contain the source.
func (r *treeMove) copyVersion(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition, change *quota.Change,
) (made s3api.Stored, err error) {
	defer func() { change.End(err) }()
	if r.keepsSource {
		err = change.Grow(ctx, v.Size)
	} else {
		err = change.Move(ctx, v.Size, r.source.Quotas, v.Key)
	}
	if err != nil {
		return s3api.Stored{}, err
	}
	change.Send(v.Size)
	return r.target.copy(ctx, v, a, to, c)
}

// deleteSource deletes a file that has a copy. A file that was replaced since it was copied stays; the error is
// ESTALE. So does the copy: other clients may have seen it, and relied on it. Where S3 refuses to delete the file,
// deleteSource removes the copy again, if the new name was not occupied.
func (r *treeMove) deleteSource(
	ctx context.Context, v s3api.Version, newKey string, made s3api.Stored, occupied bool,
) error {
	err := r.source.deleteVersion(ctx, v)
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	now, _, headErr := r.target.Bucket.Head(ctx, newKey)
	replaced := errors.Is(err, syscall.ESTALE)
	refused := !replaced && !errors.Is(err, syscall.EAGAIN) // EAGAIN: S3 may yet delete it
	if refused {
		r.source.incomplete.refused.Store(true)
	}
	switch {
	case headErr != nil || made.Name == "" || now.Name != made.Name:
		// it is not the copy any more, or nothing tells it from an equal object of another client
	case refused && !occupied && r.undo(ctx, v, now):
	case r.target.NoOverwrite && !replaced:
		r.target.incomplete.add(v, now)
	}
	return err
}

// removeTimeout bounds the requests that remove a wrong copy. They may outlive the session.
const removeTimeout = 30 * time.Second

// removeWrongCopy removes a copy whose source another client has replaced, where S3 compares no ETags of sources. It
// would be in the way of the next attempt: nothing proves that it is a copy. The caller knows that there was nothing
// before. Only the name of the request proves that what is there is the copy: another client may have stored the same
// bytes since.
func (r *treeMove) removeWrongCopy(ctx context.Context, to string, made s3api.Stored, copyErr error) {
	if made.Name == "" || !errors.Is(copyErr, s3api.ErrSourceReplaced) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	now, _, err := r.target.Bucket.Head(ctx, to)
	if err == nil && now.Name == made.Name {
		_ = r.target.deleteMade(ctx, now) // the caller has an error to return
	}
}

// undo removes the copy of a file that S3 has refused to delete, so that it is not there twice, and tells whether it
// could. The file must be as it was, so that the copy is not the last one. Where S3 may yet delete the file, because
// no answer came, nothing is undone.
func (r *treeMove) undo(ctx context.Context, v, made s3api.Version) bool {
	source, _, err := r.source.Bucket.Head(ctx, v.Key)
	return err == nil && source.Is(v) && r.target.deleteMade(ctx, made) == nil
}
