package driver

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

// Rename moves a file or, where there is none of the name, a directory. S3 copies what is moved, with its metadata, its tags, its storage
// class and its encryption, and an object is deleted only after all copies were confirmed. The time of a file that none was set for is
// that of the copy. Where S3 refuses to delete a file its copy is removed again, if it is known that nothing had the new name before: under
// [Options.NoOverwrite], and from the second such Rename on. Otherwise, and where S3 does not answer, the file may have both names; none is
// lost, and the same Rename completes it.
//
// A file replaces a file of the new name. A directory moves to a name that nothing has, or an empty directory: ENOTEMPTY keeps it
// from being mixed with another. When its move was interrupted some files have both names, none is lost, and the same Rename
// completes it, in any session: what has the new name of a file must then be proven to be its copy. Equal MD5s or checksums prove it, and
// so does user metadata that such copies get whose ETags prove nothing. Under [Options.NoOverwrite] a file is not replaced either.
//
// Only what was copied is deleted. A file that another client replaces meanwhile stays where it is: the error is ESTALE and, of a
// directory, EAGAIN. Where S3 has no conditional delete ([Profile]) it is asked right before what is there, and what is stored
// between these two requests is deleted; in a bucket that keeps versions a file comes back, and of a directory S3 keeps the version.
// What another client stores under a new name while a directory is moved stays, and the error is ENOTEMPTY. There too, a server without
// the condition (of CopyObject) is asked right before.
//
// A directory in the place of the new file is EISDIR, a file in the place of the new directory ENOTDIR; a directory moved into
// itself is an fs.ErrInvalid. Nothing happens where both names are the same.
func (f *Fs) Rename(oldname, newname string) error { return f.RenameTo(f, oldname, newname) }

// RenameTo is [Fs.Rename] to a name in another file system, which must be of the same account of the same S3 server.
func (f *Fs) RenameTo(target *Fs, oldname, newname string) error {
	return move("rename", oldname, newname, treeMove{f: f, target: target})
}

// move does what r says, from one name to another.
func move(op, oldname, newname string, r treeMove) error {
	oldKey, err := r.f.keys.Key(oldname)
	if err == nil {
		var newKey string
		if newKey, err = r.target.keys.Key(newname); err == nil {
			err = r.run(oldKey, newKey)
		}
	}
	return s3errors.LinkError(op, oldname, newname, err)
}

// A treeMove is a rename or, where it keeps the source, a copy.
type treeMove struct {
	f           *Fs // where it begins
	target      *Fs // where it ends, perhaps the same
	keepsSource bool
	from, to    string        // the prefixes of a directory
	toIsNew     bool          // there was nothing at to a moment ago
	pairs       []mergeEntry  // all of a small directory, as they were checked
	copied      *fingerprints // of its files and markers
}

func (r *treeMove) run(oldKey, newKey string) error {
	f, target := r.f, r.target
	if f.keys.IsRoot(oldKey) || target.keys.IsRoot(newKey) {
		return s3errors.ErrInvalid
	}
	oneBucket := f.bucket.Name == target.bucket.Name
	v, a, err := f.bucket.Head(r.f.ctx, oldKey)
	switch {
	case err == nil && oneBucket && oldKey == newKey:
		return nil
	case err == nil:
		return r.file(v, &a, newKey)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	r.from, r.to = f.keys.Directory(oldKey), target.keys.Directory(newKey)
	var inTheWay error
	switch {
	case oneBucket && oldKey == newKey:
		_, err := f.find.Dir(f.ctx, oldKey)
		return err
	case oneBucket && strings.HasPrefix(r.to, r.from):
		inTheWay = s3errors.ErrInvalid
	case oneBucket && strings.HasPrefix(r.from, r.to):
		inTheWay = syscall.ENOTEMPTY
	default:
		var file bool
		if file, r.toIsNew, err = target.lookupNew(newKey); err != nil {
			return err
		}
		if file {
			inTheWay = syscall.ENOTDIR
		}
	}
	if inTheWay == nil {
		return r.directory()
	}
	if _, err := f.find.Dir(f.ctx, oldKey); err != nil {
		return err
	}
	return inTheWay
}

// lookupNew tells by one request whether there is a file of a key, and whether it is certain that there is neither a file nor a directory.
func (f *Fs) lookupNew(key string) (file, nothing bool, err error) {
	if f.find.FindsBoth() {
		file, directory, err := f.find.Both(f.ctx, key)
		return file, !file && !directory, err
	}
	_, err = f.find.File(f.ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	return err == nil, false, err
}

func (r *treeMove) file(v s3api.Version, a *attributes.Attributes, newKey string) error {
	switch _, err := r.target.find.Dir(r.target.ctx, newKey); {
	case err == nil:
		return syscall.EISDIR
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	there := true // for all that is known
	if r.target.opts.NoOverwrite || r.f.incomplete.wasRefused() {
		switch _, err := r.target.find.File(r.target.ctx, newKey); {
		case errors.Is(err, fs.ErrNotExist):
			there = false
		case err != nil:
			return err
		}
	}
	if there && r.target.opts.NoOverwrite {
		if r.keepsSource || !r.target.incomplete.has(r.f.ctx, v, newKey, r.target.bucket) {
			return fs.ErrExist
		}
		err := r.f.bucket.DeleteVersion(r.f.ctx, v)
		if err == nil {
			r.f.opts.Quotas.Add(-v.Size)
			r.target.incomplete.remove(newKey)
		}
		return err
	}
	c := s3api.Condition{Absent: r.target.opts.NoOverwrite}
	etag, err := r.copyVersion(r.f.ctx, v, a, newKey, c, r.target.opts.Quotas.SizeOf(r.f.ctx, r.target.bucket, newKey))
	if err != nil || r.keepsSource {
		return err
	}
	return r.deleteSource(v, newKey, etag, there)
}

// copyVersion copies a version to a key on a condition, where it replaces so many bytes. It returns the ETag of the copy.
//
// What is renamed takes no more room than it did, but in the quotas that it comes to.
func (r *treeMove) copyVersion(
	ctx context.Context, v s3api.Version, a *attributes.Attributes, to string, c s3api.Condition, replaced func() int64,
) (etag string, err error) {
	added := quota.Reservation{Quotas: r.target.opts.Quotas, Replaced: replaced}
	if !r.keepsSource {
		added.Exempt = r.f.opts.Quotas
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
func (r *treeMove) deleteSource(v s3api.Version, newKey, etag string, there bool) error {
	attempts, err := r.f.bucket.DeleteVersionCounted(r.f.ctx, v)
	if err == nil {
		r.f.opts.Quotas.Add(-v.Size)
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	made, _, headErr := r.target.bucket.Head(r.f.ctx, newKey)
	replaced := errors.Is(err, syscall.ESTALE)
	refused := attempts < 2 && !replaced && !errors.Is(err, syscall.EAGAIN)
	if refused {
		r.f.incomplete.refuse()
	}
	switch {
	case headErr != nil || strings.Trim(made.ETag, `"`) != strings.Trim(etag, `"`): // it is not the copy any more
	case replaced && !there:
		r.removeCopy(made)
	case refused && !there && r.undo(v, made):
	case r.target.opts.NoOverwrite && !replaced:
		r.target.incomplete.add(v, made)
	}
	return err
}

// undo removes the copy of a file that S3 has refused to delete, so that it is not there twice, and tells whether it could. The file
// must be as it was, so that the copy is not the last one. Where S3 may yet delete the file, because no answer came, nothing is undone.
func (r *treeMove) undo(v, made s3api.Version) bool {
	source, _, err := r.f.bucket.Head(r.f.ctx, v.Key)
	return err == nil && source.Is(v) && r.removeCopy(made)
}

// removeCopy removes a copy that nobody has replaced, and tells whether it could.
func (r *treeMove) removeCopy(made s3api.Version) bool {
	err := r.target.bucket.DeleteVersion(r.f.ctx, made)
	if err == nil {
		r.target.opts.Quotas.Add(-made.Size)
	}
	return err == nil
}
