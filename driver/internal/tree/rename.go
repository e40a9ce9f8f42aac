package tree

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/quota"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// Rename moves a file or a directory to a key in a target, perhaps the same tree.
func (f *Tree) Rename(ctx context.Context, target *Tree, oldKey, newKey string) error {
	return (&treeMove{f: f, target: target}).run(ctx, oldKey, newKey)
}

// Copy copies a file or a directory to a key in a target, perhaps the same tree.
func (f *Tree) Copy(ctx context.Context, target *Tree, oldKey, newKey string) error {
	return (&treeMove{f: f, target: target, keepsSource: true}).run(ctx, oldKey, newKey)
}

// A treeMove is a rename or, where it keeps the source, a copy.
type treeMove struct {
	f           *Tree // where it begins
	target      *Tree // where it ends, perhaps the same
	keepsSource bool
	from, to    string        // the prefixes of a directory
	toIsNew     bool          // there was nothing at to a moment ago
	pairs       []mergeEntry  // all of a small directory, as they were checked
	copied      *fingerprints // of its files and markers
}

func (r *treeMove) run(ctx context.Context, oldKey, newKey string) error {
	f, target := r.f, r.target
	if f.Keys.IsRoot(oldKey) || target.Keys.IsRoot(newKey) {
		return s3errors.ErrInvalid
	}
	oneBucket := f.Bucket.Name == target.Bucket.Name
	v, a, err := f.Bucket.Head(ctx, oldKey)
	switch {
	case err == nil && oneBucket && oldKey == newKey:
		return nil
	case err == nil:
		return r.file(ctx, v, &a, newKey)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	r.from, r.to = f.Keys.Directory(oldKey), target.Keys.Directory(newKey)
	var inTheWay error
	switch {
	case oneBucket && oldKey == newKey:
		_, err := f.Dir(ctx, oldKey)
		return err
	case oneBucket && strings.HasPrefix(r.to, r.from):
		inTheWay = s3errors.ErrInvalid
	case oneBucket && strings.HasPrefix(r.from, r.to):
		inTheWay = syscall.ENOTEMPTY
	default:
		var file bool
		if file, r.toIsNew, err = target.lookupNew(ctx, newKey); err != nil {
			return err
		}
		if file {
			inTheWay = syscall.ENOTDIR
		}
	}
	if inTheWay == nil {
		return r.directory(ctx)
	}
	if _, err := f.Dir(ctx, oldKey); err != nil {
		return err
	}
	return inTheWay
}

// lookupNew tells by one request whether there is a file of a key, and whether it is certain that there is neither a file nor a directory.
func (f *Tree) lookupNew(ctx context.Context, key string) (file, nothing bool, err error) {
	if f.FindsBoth() {
		file, directory, err := f.Both(ctx, key)
		return file, !file && !directory, err
	}
	_, err = f.File(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	return err == nil, false, err
}

func (r *treeMove) file(ctx context.Context, v s3api.Version, a *attributes.Attributes, newKey string) error {
	switch _, err := r.target.Dir(ctx, newKey); {
	case err == nil:
		return syscall.EISDIR
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	there := true // for all that is known
	if r.target.NoOverwrite || r.f.incomplete.wasRefused() {
		switch _, err := r.target.File(ctx, newKey); {
		case errors.Is(err, fs.ErrNotExist):
			there = false
		case err != nil:
			return err
		}
	}
	if there && r.target.NoOverwrite {
		if r.keepsSource || !r.target.incomplete.has(ctx, v, newKey, r.target.Bucket) {
			return fs.ErrExist
		}
		err := r.f.Bucket.DeleteVersion(ctx, v)
		if err == nil {
			r.f.Quotas.Add(-v.Size)
			r.target.incomplete.remove(newKey)
		}
		return err
	}
	c := s3api.Condition{Absent: r.target.NoOverwrite}
	etag, err := r.copyVersion(ctx, v, a, newKey, c, r.target.Quotas.SizeOf(ctx, r.target.Bucket, newKey))
	if err != nil || r.keepsSource {
		return err
	}
	return r.deleteSource(ctx, v, newKey, etag, there)
}

// copyVersion copies a version to a key on a condition, where it replaces so many bytes. It returns the ETag of the copy.
//
// What is renamed takes no more room than it did, but in the quotas that it comes to.
func (r *treeMove) copyVersion(
	ctx context.Context, v s3api.Version, a *attributes.Attributes, to string, c s3api.Condition, replaced func() int64,
) (etag string, err error) {
	added := quota.Reservation{Quotas: r.target.Quotas, Replaced: replaced}
	if !r.keepsSource {
		added.Exempt = r.f.Quotas
	}
	if err := added.Grow(ctx, v.Size); err != nil {
		return "", err
	}
	etag, err = r.target.copy(ctx, v, a, to, c)
	added.End(v.Size, err == nil)
	return etag, err
}

// deleteSource deletes a file that has a copy, and where that fails sees to what becomes of the copy. It may be removed where there was
// nothing of its name. A file that was replaced since it was copied stays; the error is ESTALE.
func (r *treeMove) deleteSource(ctx context.Context, v s3api.Version, newKey, etag string, there bool) error {
	attempts, err := r.f.Bucket.DeleteVersionCounted(ctx, v)
	if err == nil {
		r.f.Quotas.Add(-v.Size)
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	made, _, headErr := r.target.Bucket.Head(ctx, newKey)
	replaced := errors.Is(err, syscall.ESTALE)
	refused := attempts < 2 && !replaced && !errors.Is(err, syscall.EAGAIN)
	if refused {
		r.f.incomplete.refuse()
	}
	switch {
	case headErr != nil || strings.Trim(made.ETag, `"`) != strings.Trim(etag, `"`): // it is not the copy any more
	case replaced && !there:
		r.removeCopy(ctx, made)
	case refused && !there && r.undo(ctx, v, made):
	case r.target.NoOverwrite && !replaced:
		r.target.incomplete.add(v, made)
	}
	return err
}

// undo removes the copy of a file that S3 has refused to delete, so that it is not there twice, and tells whether it could. The file
// must be as it was, so that the copy is not the last one. Where S3 may yet delete the file, because no answer came, nothing is undone.
func (r *treeMove) undo(ctx context.Context, v, made s3api.Version) bool {
	source, _, err := r.f.Bucket.Head(ctx, v.Key)
	return err == nil && source.Is(v) && r.removeCopy(ctx, made)
}

// removeCopy removes a copy that nobody has replaced, and tells whether it could.
func (r *treeMove) removeCopy(ctx context.Context, made s3api.Version) bool {
	err := r.target.Bucket.DeleteVersion(ctx, made)
	if err == nil {
		r.target.Quotas.Add(-made.Size)
	}
	return err == nil
}
