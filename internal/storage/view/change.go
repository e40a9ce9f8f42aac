package view

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver"
)

// Mkdir creates a directory. It succeeds if something exists that the user cannot see, because for such a user every
// directory exists.
func (f *Files) Mkdir(name string) error {
	t := f.resolve(name)
	err := f.mkdir(t)
	if errors.Is(err, fs.ErrExist) && !f.canSee(t) {
		err = nil
	}
	return f.report(t, err)
}

func (f *Files) mkdir(t *target) error {
	if !t.rights.Mkdir {
		return t.deniedChange("mkdir")
	}
	if err := f.printable("mkdir", t); err != nil {
		return err
	}
	if t.stays() {
		return t.fail("mkdir", fs.ErrExist)
	}
	if f.objectFor(t, driver.Uploaded) != "" { // files of the directory will not be in it
		f.Directories.seePath(t.name)
		return nil
	}
	if err := t.mount.Store.Mkdir(f.ctx, t.inner); err != nil {
		return t.replacePath(err)
	}
	f.Directories.seePath(t.name)
	return nil
}

// MaxLevels is the maximum depth of directories that MkdirAll creates, because each level takes up to three requests.
const MaxLevels = 64

// ErrTooDeep reports that a directory has more than MaxLevels levels.
var ErrTooDeep = fmt.Errorf("the directory has more than %d levels", MaxLevels)

// MkdirAll creates a directory and its parents. Each parent must exist, or the user must have permission to create it.
// It sends no request if there are more than MaxLevels levels.
func (f *Files) MkdirAll(name string) error {
	t := f.resolve(name)
	err := f.mkdirAll(t)
	if errors.Is(err, syscall.ENOTDIR) && !f.canSee(t) {
		err = nil
	}
	return f.report(t, err)
}

func (f *Files) mkdirAll(t *target) error {
	if !t.rights.Mkdir {
		return t.deniedChange("mkdir")
	}
	if strings.Count(t.name, "/") > MaxLevels {
		return t.fail("mkdir", ErrTooDeep)
	}
	for dir := path.Dir(t.name); dir != "/"; dir = path.Dir(dir) {
		if f.Policy.At(dir).Mkdir {
			continue
		}
		if _, err := f.StatDir(dir); err != nil {
			return t.deniedError("mkdir")
		}
	}
	if err := f.printable("mkdir", t); err != nil {
		return err
	}
	if t.name == "/" {
		return t.fail("mkdir", fs.ErrExist)
	}
	if !t.fixed && f.objectFor(t, driver.Uploaded) == "" {
		if err := t.mount.Store.MkdirAll(f.ctx, t.inner); err != nil {
			return t.replacePath(err)
		}
	}
	f.Directories.seePath(t.name)
	return nil
}

// RemoveFile removes a file, but not a directory. In S3, this may also remove the directories above the file. For the
// user they still exist, whether a session has seen them before or not.
func (f *Files) RemoveFile(name string) error {
	t := f.resolve(name)
	return f.report(t, f.removeFile(t))
}

func (f *Files) removeFile(t *target) error {
	switch {
	case !t.rights.Delete:
		return t.deniedChange("remove")
	case t.inner == "/":
		return t.fail("remove", syscall.EISDIR)
	}
	remove := func() error {
		if err := t.mount.Store.RemoveFile(f.ctx, t.inner); err != nil {
			return t.replacePath(err)
		}
		f.Directories.noteRemoval(t.name)
		return nil
	}
	if f.Skip.match(t.canonical) {
		return remove()
	}
	return f.change(FileChange{Kind: Delete, Path: t.name, URI: t.uri()}, remove)
}

// RemoveDir removes an empty directory. It succeeds if a session has seen the directory and it has vanished since. The
// store has already checked that no file has the name.
func (f *Files) RemoveDir(name string) error {
	t := f.resolve(name)
	return f.report(t, f.removeDir(t))
}

func (f *Files) removeDir(t *target) error {
	switch {
	case !t.rights.Delete:
		return t.deniedChange("remove")
	case t.stays():
		return t.fail("remove", ErrFixed)
	}
	err := t.mount.Store.RemoveDir(f.ctx, t.inner)
	if err != nil {
		if seen, _ := f.Directories.seen(t.name); !seen || !errors.Is(err, fs.ErrNotExist) {
			return t.replacePath(err)
		}
	}
	f.Directories.remove(t.name)
	f.Directories.noteRemoval(t.name)
	return nil
}

// RemoveAll removes a directory with its contents. It needs permission for everything that may be below. It refuses a
// directory that leads to a mount, because the mount cannot be removed.
func (f *Files) RemoveAll(name string) error {
	t := f.resolve(name)
	return f.report(t, f.removeAll(t))
}

func (f *Files) removeAll(t *target) error {
	switch least, _ := f.bounds(t); {
	case !least.Delete:
		return t.deniedChange("remove")
	case t.stays():
		return t.fail("remove", ErrFixed)
	}
	return f.change(FileChange{Kind: Delete, Path: t.name, URI: t.uri(), Steps: true}, func() error {
		if err := t.mount.Store.RemoveAll(f.ctx, t.inner); err != nil {
			return t.replacePath(err)
		}
		f.Directories.remove(t.name)
		f.Directories.noteRemoval(t.name)
		return nil
	})
}

// Rename moves a file or directory, also between mounts of one account. Overwriting a file needs write permission.
// Like RemoveFile, the move may remove the directories above the old name. A file in the past is copied and stays
// there.
func (f *Files) Rename(oldname, newname string) error {
	from, to := f.resolve(oldname), f.resolve(newname)
	return f.reportMove(from, to, f.rename(from, to))
}

func (f *Files) rename(from, to *target) error {
	if from.past {
		return f.copy(from, to)
	}
	if err := f.allowMove("rename", from, to, mayMove); err != nil {
		return err
	}
	unseen := f.unseen.hasStored(from.canonical)
	err := f.move(Rename, from, to, func() error {
		if err := from.mount.Store.RenameTo(f.ctx, to.mount.Store, from.inner, to.inner); err != nil {
			return namedMove(from, to, err)
		}
		f.Directories.remove(from.name)
		f.Directories.noteRemoval(from.name)
		f.Directories.seeParent(to.name)
		return nil
	})
	if err == nil && unseen && (to.sent != "" || !f.canSee(to)) {
		f.unseen.store(to)
	}
	return err
}

// Copy copies a file or directory, also between mounts of one account. Between two accounts, the error is
// [ErrOtherAccount].
func (f *Files) Copy(oldname, newname string) error {
	from, to := f.resolve(oldname), f.resolve(newname)
	return f.reportMove(from, to, f.copy(from, to))
}

func (f *Files) copy(from, to *target) error {
	if err := f.allowMove("copy", from, to, mayCopy); err != nil {
		return err
	}
	kind := Copy
	if from.past {
		kind = Restore
	}
	return f.move(kind, from, to, func() error {
		if err := from.mount.Store.CopyTo(f.ctx, to.mount.Store, from.inner, to.inner); err != nil {
			return namedMove(from, to, err)
		}
		f.Directories.seeParent(to.name)
		return nil
	})
}

// allowMove refuses a move that is not permitted, then an invalid new name, and then a move that S3 cannot do.
func (f *Files) allowMove(op string, from, to *target, permitted func(from, to, most Rights) bool) error {
	if to.past {
		return linkError(op, from, to, ErrPast)
	}
	if err := f.permitMove(op, from, to, permitted); err != nil {
		return err
	}
	if err := f.printable(op, to); err != nil {
		return err
	}
	if err := f.mayStore(op, to); err != nil {
		return err
	}
	f.placeNew(to, driver.Copied)
	switch {
	case to.stays(), from.stays() && op == "rename":
		return linkError(op, from, to, ErrFixed)
	case from.fixed:
		return linkError(op, from, to, fs.ErrPermission)
	case from.mount.Account != to.mount.Account:
		return linkError(op, from, to, ErrOtherAccount)
	}
	return nil
}

// permitMove calls permitted with the rights below the old name, and with the least and the most rights below the new
// one.
//
// A directory needs more rights than a file. The reply shows whether its new name was free, so the user must be
// allowed to see what has this name. A directory also must not be moved to a place where the user can list names, if
// the user could not list them before.
func (f *Files) permitMove(op string, from, to *target, permitted func(from, to, most Rights) bool) error {
	if !f.canSee(from) {
		return from.deniedError(op)
	}
	old, _ := f.bounds(from)
	least, most := f.bounds(to)
	if permitted(old, least, most) && f.canSee(to) && (old.List || !most.List) && f.objectFor(to, driver.Copied) == "" {
		return nil
	}
	if !permitted(from.rights, to.rights, to.rights) {
		return from.deniedError(op)
	}
	// Only a directory makes the move fail.
	_, err := f.statDir(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		return from.deniedError(op)
	}
	return err
}

// mayMove reports whether a user may move a file with the rights from to a place with the rights to. A move must not
// give the user permission to read or delete the file, so most has the most rights at the new place.
func mayMove(from, to, most Rights) bool {
	return from.Rename && to.Write && (from.Read || !most.Read) && (from.Delete || !most.Delete)
}

// mayCopy reports whether a user may copy a file with the rights from to a place with the rights to.
func mayCopy(from, to, _ Rights) bool { return from.Read && to.Write }

// SetTime sets the modification time of a file.
func (f *Files) SetTime(name string, modified time.Time) error {
	t := f.resolve(name)
	if !t.rights.Write || !f.canSee(t) {
		return f.report(t, t.deniedChange("chtimes"))
	}
	return f.report(t, t.replacePath(t.mount.Store.SetTime(f.ctx, t.inner, modified)))
}
