package view

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"
)

// Mkdir makes a directory. It succeeds where something exists that the user cannot see, because each directory exists
// for such a user.
func (f *Files) Mkdir(name string) error {
	t := f.resolve(name)
	err := f.mkdir(t)
	if errors.Is(err, fs.ErrExist) && !f.canSee(t) {
		err = nil
	}
	return f.noted(t, err)
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
	if err := t.mount.Store.Mkdir(f.ctx, t.inner); err != nil {
		return t.named(err)
	}
	f.Directories.seePath(t.name)
	return nil
}

// MaxLevels is the depth of the deepest directory that MkdirAll makes, because each level takes up to three requests.
const MaxLevels = 64

// ErrTooDeep reports that MkdirAll makes no directory of more than MaxLevels levels.
var ErrTooDeep = fmt.Errorf("the directory has more than %d levels", MaxLevels)

// MkdirAll makes a directory and its parents. So each of them must exist, or the user must have the right to make it.
// It makes no request if there are more than MaxLevels of them.
func (f *Files) MkdirAll(name string) error {
	t := f.resolve(name)
	err := f.mkdirAll(t)
	if errors.Is(err, syscall.ENOTDIR) && !f.canSee(t) {
		err = nil
	}
	return f.noted(t, err)
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
			return t.denied("mkdir")
		}
	}
	if err := f.printable("mkdir", t); err != nil {
		return err
	}
	if t.name == "/" {
		return t.fail("mkdir", fs.ErrExist)
	}
	if !t.fixed {
		if err := t.mount.Store.MkdirAll(f.ctx, t.inner); err != nil {
			return t.named(err)
		}
	}
	f.Directories.seePath(t.name)
	return nil
}

// RemoveFile removes a file only. It may take the directories above the file with it. They stay for the user, whether
// a session has seen them before or not.
func (f *Files) RemoveFile(name string) error {
	t := f.resolve(name)
	return f.noted(t, f.removeFile(t))
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
			return t.named(err)
		}
		f.Directories.noteRemoval(t.name)
		return nil
	}
	if f.Skip.match(t.canonical) {
		return remove()
	}
	return f.change(Change{Kind: Delete, Path: t.name, URI: t.uri()}, remove)
}

// RemoveDir removes an empty directory only. It succeeds for a directory that was seen and has vanished since. The
// store has looked for a file of the name itself.
func (f *Files) RemoveDir(name string) error {
	t := f.resolve(name)
	return f.noted(t, f.removeDir(t))
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
			return t.named(err)
		}
	}
	f.Directories.remove(t.name)
	f.Directories.noteRemoval(t.name)
	return nil
}

// RemoveAll removes a directory with all that it holds. It needs the right for everything that may be below, and
// refuses a directory that leads to a mount, because it would remove the mount too.
func (f *Files) RemoveAll(name string) error {
	t := f.resolve(name)
	return f.noted(t, f.removeAll(t))
}

func (f *Files) removeAll(t *target) error {
	switch least, _ := f.bounds(t); {
	case !least.Delete:
		return t.deniedChange("remove")
	case t.stays():
		return t.fail("remove", ErrFixed)
	}
	return f.change(Change{Kind: Delete, Path: t.name, URI: t.uri(), Steps: true}, func() error {
		if err := t.mount.Store.RemoveAll(f.ctx, t.inner); err != nil {
			return t.named(err)
		}
		f.Directories.remove(t.name)
		f.Directories.noteRemoval(t.name)
		return nil
	})
}

// Rename moves a file or directory, also between mounts of one account. To replace a file is to write it. The move may
// take the directories above the old name with it, as RemoveFile does. What is of the past is copied, and stays.
func (f *Files) Rename(oldname, newname string) error {
	from, to := f.resolve(oldname), f.resolve(newname)
	return f.notedMove(from, to, f.rename(from, to))
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
	if err == nil && unseen && !f.canSee(to) {
		f.unseen.store(to.canonical)
	}
	return err
}

// Copy copies a file or directory, also between mounts of one account.
func (f *Files) Copy(oldname, newname string) error {
	from, to := f.resolve(oldname), f.resolve(newname)
	return f.notedMove(from, to, f.copy(from, to))
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

// allowMove refuses a move that is not permitted, then one to a name that cannot be, and then one that S3 cannot do.
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

// permitMove asks permitted about the rights below the old name, and about the least and the most rights below the new
// one.
//
// A directory needs more than a file. The reply tells whether its new name was free, so the user must see what has
// that name. And it must not go from where the user cannot list names to where the user can.
func (f *Files) permitMove(op string, from, to *target, permitted func(from, to, most Rights) bool) error {
	if !f.canSee(from) {
		return from.denied(op)
	}
	old, _ := f.bounds(from)
	least, most := f.bounds(to)
	if permitted(old, least, most) && f.canSee(to) && (old.List || !most.List) {
		return nil
	}
	if !permitted(from.rights, to.rights, to.rights) {
		return from.denied(op)
	}
	// Only a directory makes it fail.
	_, err := f.statDir(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		return from.denied(op)
	}
	return err
}

// mayMove reports whether a user may move a file with the rights from to a place with the rights to. A move must not
// make a file readable or deletable that was not, so most has the most rights at the new place.
func mayMove(from, to, most Rights) bool {
	return from.Rename && to.Write && (from.Read || !most.Read) && (from.Delete || !most.Delete)
}

// mayCopy reports whether a user may copy a file with the rights from to a place with the rights to.
func mayCopy(from, to, _ Rights) bool { return from.Read && to.Write }

// SetTime sets the time of modification of a file.
func (f *Files) SetTime(name string, modified time.Time) error {
	t := f.resolve(name)
	if !t.rights.Write || !f.canSee(t) {
		return f.noted(t, t.deniedChange("chtimes"))
	}
	return f.noted(t, t.named(t.mount.Store.SetTime(f.ctx, t.inner, modified)))
}
