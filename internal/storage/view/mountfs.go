package view

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/afero"
)

// A Mount is a storage under a directory that the user sees.
type Mount[S Movable[S]] struct {
	Dir     string // absolute, as the user sees it
	Storage S
	Account any // the S3 account, comparable; S3 copies only between mounts of equal accounts
}

// Movable is a storage whose files S3 can move and copy to another one of the same account.
type Movable[S any] interface {
	ObjectStorage
	RenameTo(to S, oldname, newname string) error
	CopyTo(ctx context.Context, to S, oldname, newname string) error
}

// Within returns the pathname that name has below dir, and false if it is not below dir. Both are absolute and clean.
func Within(name, dir string) (string, bool) {
	switch {
	case dir == "/":
		return name, true
	case name == dir:
		return "/", true
	case strings.HasPrefix(name, dir+"/"):
		return name[len(dir):], true
	}
	return "", false
}

// LeadsTo reports whether name is dir, which is absolute and clean, or a directory above it.
func LeadsTo(name, dir string) bool {
	_, ok := Within(dir, path.Clean("/"+name))
	return ok
}

// mountFS is a storage that is made of several. Each pathname belongs to the deepest mount above it, which hides what
// the others have there.
//
// The directory of a mount, and each directory above it, exists without an object. It can be neither removed nor
// renamed.
type mountFS[S Movable[S]] struct {
	mounts []Mount[S] // the deepest first
}

// NewMountFS mounts storages, one of them at "/". If that is the only one it is returned itself.
func NewMountFS[S Movable[S]](mounts []Mount[S]) ObjectStorage {
	if len(mounts) == 1 {
		return mounts[0].Storage
	}
	f := &mountFS[S]{mounts: slices.Clone(mounts)}
	// of those above a name, the deepest is the longest
	slices.SortFunc(f.mounts, func(a, b Mount[S]) int { return len(b.Dir) - len(a.Dir) })
	return f
}

// find returns the mount of a pathname, and the pathname within it.
func (f *mountFS[S]) find(name string) (m Mount[S], inner string) {
	name = path.Clean("/" + name)
	for _, m := range f.mounts {
		if inner, ok := Within(name, m.Dir); ok {
			return m, inner
		}
	}
	panic("view: no storage is mounted at the root")
}

// leadsToMount reports whether a pathname is the directory of a mount, or a directory above one.
func (f *mountFS[S]) leadsToMount(name string) bool {
	return slices.ContainsFunc(f.mounts, func(m Mount[S]) bool { return m.Dir != "/" && LeadsTo(name, m.Dir) })
}

// ReadDirSeq puts the directories that lead to mounts among the entries, in the order of keys. It leaves out what
// they hide.
func (f *mountFS[S]) ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error) {
	m, inner := f.find(name)
	entries, err := m.Storage.ReadDirSeq(inner)
	own, hides := f.mountsIn(name)
	if len(own) == 0 {
		return entries, err
	}
	if errors.Is(err, fs.ErrNotExist) {
		entries, err = func(func(fs.FileInfo, error) bool) {}, nil
	}
	if err != nil {
		return nil, err
	}
	return func(yield func(fs.FileInfo, error) bool) {
		left := own
		for info, err := range entries {
			if err != nil {
				yield(nil, err)
				return
			}
			key := info.Name()
			if info.IsDir() {
				key += "/"
			}
			for len(left) > 0 && left[0] <= key {
				if !yield(Directory(strings.TrimSuffix(left[0], "/")), nil) {
					return
				}
				left = left[1:]
			}
			if slices.Contains(own, key) || slices.Contains(hides, key) {
				continue
			}
			if !yield(info, nil) {
				return
			}
		}
		for _, key := range left {
			if !yield(Directory(strings.TrimSuffix(key, "/")), nil) {
				return
			}
		}
	}, nil
}

// mountsIn returns the directories in a directory that lead to mounts, sorted and with a final slash as in keys. The
// second result has the names of files that a mount hides.
func (f *mountFS[S]) mountsIn(name string) (own, hides []string) {
	name = path.Clean("/" + name)
	for _, m := range f.mounts {
		rest, ok := Within(m.Dir, name)
		if !ok || rest == "/" {
			continue
		}
		first, deeper, _ := strings.Cut(rest[len("/"):], "/")
		own = append(own, first+"/")
		if deeper == "" {
			hides = append(hides, first)
		}
	}
	slices.Sort(own)
	return slices.Compact(own), hides
}

func (f *mountFS[S]) Stat(name string) (fs.FileInfo, error) {
	m, inner := f.find(name)
	return f.orMount(name, inner, m.Storage.Stat)
}

func (f *mountFS[S]) StatDir(name string) (fs.FileInfo, error) {
	m, inner := f.find(name)
	return f.orMount(name, inner, m.Storage.StatDir)
}

// orMount describes a directory that leads to mounts if the storage has none of that name.
func (f *mountFS[S]) orMount(name, inner string, stat func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	leads := f.leadsToMount(name)
	if leads && inner == "/" {
		return Directory(path.Base(path.Clean("/" + name))), nil
	}
	info, err := stat(inner)
	if leads && errors.Is(err, fs.ErrNotExist) {
		return Directory(path.Base(inner)), nil
	}
	return info, err
}

func (f *mountFS[S]) StatFile(name string) (fs.FileInfo, error) {
	m, inner := f.find(name)
	return m.Storage.StatFile(inner)
}

func (f *mountFS[S]) PendingUpload(name string) (fs.FileInfo, error) {
	m, inner := f.find(name)
	return m.Storage.PendingUpload(inner)
}

func (f *mountFS[S]) Mkdir(name string, mode fs.FileMode) error {
	if f.leadsToMount(name) {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	}
	m, inner := f.find(name)
	return m.Storage.Mkdir(inner, mode)
}

func (f *mountFS[S]) MkdirAll(name string, mode fs.FileMode) error {
	if f.leadsToMount(name) {
		return nil
	}
	m, inner := f.find(name)
	return m.Storage.MkdirAll(inner, mode)
}

// Remove refuses a directory that leads to a mount.
func (f *mountFS[S]) Remove(name string) error {
	if f.leadsToMount(name) {
		return denied("remove", name)
	}
	m, inner := f.find(name)
	return m.Storage.Remove(inner)
}

// RemoveAll refuses a directory that leads to a mount, because it would remove the mount too.
func (f *mountFS[S]) RemoveAll(name string) error {
	if f.leadsToMount(name) {
		return denied("remove", name)
	}
	m, inner := f.find(name)
	return m.Storage.RemoveAll(inner)
}

// RemoveDir refuses a directory that leads to a mount.
func (f *mountFS[S]) RemoveDir(name string) error {
	if f.leadsToMount(name) {
		return denied("remove", name)
	}
	m, inner := f.find(name)
	return m.Storage.RemoveDir(inner)
}

func (f *mountFS[S]) RemoveFile(name string) error {
	m, inner := f.find(name)
	return m.Storage.RemoveFile(inner)
}

// errOtherAccount is an [errors.ErrUnsupported].
var errOtherAccount = fmt.Errorf("no S3 account has both folders, so a client must download and upload: %w (%w)",
	errors.ErrUnsupported, syscall.EXDEV)

// Rename moves a file or directory, also between mounts of one account.
func (f *mountFS[S]) Rename(oldname, newname string) error {
	return f.acrossMounts("rename", oldname, newname, S.RenameTo)
}

// Copy copies a file or directory, also between mounts of one account.
func (f *mountFS[S]) Copy(ctx context.Context, oldname, newname string) error {
	return f.acrossMounts("copy", oldname, newname, func(from, to S, oldname, newname string) error {
		return from.CopyTo(ctx, to, oldname, newname)
	})
}

// acrossMounts calls do with the storages of two names. It refuses directories that lead to mounts, and mounts of two
// accounts.
func (f *mountFS[S]) acrossMounts(
	op, oldname, newname string, do func(from, to S, oldname, newname string) error,
) error {
	from, old := f.find(oldname)
	to, renamed := f.find(newname)
	err := errOtherAccount
	switch {
	case f.leadsToMount(oldname) || f.leadsToMount(newname):
		err = fs.ErrPermission
	case from.Account == to.Account:
		return do(from.Storage, to.Storage, old, renamed)
	}
	return &os.LinkError{Op: op, Old: oldname, New: newname, Err: err}
}

func (f *mountFS[S]) Hash(
	ctx context.Context, name, algorithm string, from, to int64,
) (sum []byte, end int64, err error) {
	m, inner := f.find(name)
	return m.Storage.Hash(ctx, inner, algorithm, from, to)
}

func (f *mountFS[S]) Create(name string) (afero.File, error) {
	m, inner := f.find(name)
	return m.Storage.Create(inner)
}

func (f *mountFS[S]) Open(name string) (afero.File, error) { return f.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile opens no directory that leads to mounts, because only ReadDirSeq knows its entries.
func (f *mountFS[S]) OpenFile(name string, flag int, mode fs.FileMode) (afero.File, error) {
	m, inner := f.find(name)
	if f.leadsToMount(name) {
		return m.Storage.OpenAt(inner, flag, 0)
	}
	return m.Storage.OpenFile(inner, flag, mode)
}

func (f *mountFS[S]) OpenAt(name string, flag int, offset int64) (afero.File, error) {
	m, inner := f.find(name)
	return m.Storage.OpenAt(inner, flag, offset)
}

func (f *mountFS[S]) Chmod(name string, mode fs.FileMode) error {
	m, inner := f.find(name)
	return m.Storage.Chmod(inner, mode)
}

func (f *mountFS[S]) Chown(name string, uid, gid int) error {
	m, inner := f.find(name)
	return m.Storage.Chown(inner, uid, gid)
}

func (f *mountFS[S]) Chtimes(name string, atime, mtime time.Time) error {
	m, inner := f.find(name)
	return m.Storage.Chtimes(inner, atime, mtime)
}

// URI is that of the object.
func (f *mountFS[S]) URI(name string) string {
	m, inner := f.find(name)
	return m.Storage.URI(inner)
}

// Presign makes a link to the object.
func (f *mountFS[S]) Presign(ctx context.Context, name string, valid time.Duration) (string, error) {
	m, inner := f.find(name)
	return m.Storage.Presign(ctx, inner, valid)
}

func (f *mountFS[S]) Name() string { return f.mounts[len(f.mounts)-1].Storage.Name() } // that of "/"
