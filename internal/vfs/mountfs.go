package vfs

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

// A Mount is a storage under a directory of a user.
type Mount[S Movable[S]] struct {
	Dir     string // absolute, as the user sees it
	Storage S
	Account any // of S3; S3 copies only between mounts that have the same
}

// Movable is a storage whose files S3 can move and copy to another one of the same account.
type Movable[S any] interface {
	ObjectStorage
	RenameTo(to S, oldname, newname string) error
	CopyTo(ctx context.Context, to S, oldname, newname string) error
}

// Within is the pathname that name has for who sees dir as "/", or false if it is not in there. Both are absolute and clean.
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

// LeadsTo reports whether a pathname is that of a directory, absolute and clean, or of one above.
func LeadsTo(name, dir string) bool {
	_, ok := Within(dir, path.Clean("/"+name))
	return ok
}

// folders is a storage that is made of several: each pathname is in the one that is mounted the deepest above it. What another one
// has there is hidden by it.
//
// The directory of a mount, and each above it, exists although no object is in it, and can be neither removed nor renamed.
type folders[S Movable[S]] struct {
	mounts []Mount[S] // the deepest first
}

// NewMountFS mounts storages, one of them at "/". A single one needs no more.
func NewMountFS[S Movable[S]](mounts []Mount[S]) ObjectStorage {
	if len(mounts) == 1 {
		return mounts[0].Storage
	}
	f := &folders[S]{mounts: slices.Clone(mounts)}
	slices.SortFunc(f.mounts, func(a, b Mount[S]) int { return len(b.Dir) - len(a.Dir) }) // of those above a name, the deepest is the longest
	return f
}

// find returns where a pathname is, and what it is called there.
func (f *folders[S]) find(name string) (p Mount[S], inner string) {
	name = path.Clean("/" + name)
	for _, p := range f.mounts {
		if inner, ok := Within(name, p.Dir); ok {
			return p, inner
		}
	}
	panic("vfs: no storage is mounted at the root")
}

// leads reports whether a pathname is that of a directory where something is mounted, or of one above.
func (f *folders[S]) leads(name string) bool {
	return slices.ContainsFunc(f.mounts, func(m Mount[S]) bool { return m.Dir != "/" && LeadsTo(name, m.Dir) })
}

// ReadDirSeq puts the directories that lead to mounts among the entries, in the order of keys, and leaves out what they hide.
func (f *folders[S]) ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error) {
	p, inner := f.find(name)
	entries, err := p.Storage.ReadDirSeq(inner)
	own, hides := f.inside(name)
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

// inside is the directories in a directory that lead to mounts, sorted, as keys end: with a slash. Where one is mounted itself a file of
// its name is hidden.
func (f *folders[S]) inside(name string) (own, hides []string) {
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

func (f *folders[S]) Stat(name string) (fs.FileInfo, error) {
	p, inner := f.find(name)
	return f.orMount(name, inner, p.Storage.Stat)
}

func (f *folders[S]) StatDir(name string) (fs.FileInfo, error) {
	p, inner := f.find(name)
	return f.orMount(name, inner, p.Storage.StatDir)
}

// orMount describes a directory that leads to mounts where there is no other.
func (f *folders[S]) orMount(name, inner string, stat func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	leads := f.leads(name)
	if leads && inner == "/" {
		return Directory(path.Base(path.Clean("/" + name))), nil
	}
	info, err := stat(inner)
	if leads && errors.Is(err, fs.ErrNotExist) {
		return Directory(path.Base(inner)), nil
	}
	return info, err
}

func (f *folders[S]) StatFile(name string) (fs.FileInfo, error) {
	p, inner := f.find(name)
	return p.Storage.StatFile(inner)
}

func (f *folders[S]) PendingUpload(name string) (fs.FileInfo, error) {
	p, inner := f.find(name)
	return p.Storage.PendingUpload(inner)
}

func (f *folders[S]) Mkdir(name string, mode fs.FileMode) error {
	if f.leads(name) {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	}
	p, inner := f.find(name)
	return p.Storage.Mkdir(inner, mode)
}

func (f *folders[S]) MkdirAll(name string, mode fs.FileMode) error {
	if f.leads(name) {
		return nil
	}
	p, inner := f.find(name)
	return p.Storage.MkdirAll(inner, mode)
}

// Remove does not remove what leads to a mount.
func (f *folders[S]) Remove(name string) error {
	if f.leads(name) {
		return denied("remove", name)
	}
	p, inner := f.find(name)
	return p.Storage.Remove(inner)
}

// RemoveAll does not remove what leads to a mount, because the mount would go too.
func (f *folders[S]) RemoveAll(name string) error {
	if f.leads(name) {
		return denied("remove", name)
	}
	p, inner := f.find(name)
	return p.Storage.RemoveAll(inner)
}

// RemoveDir does not remove what leads to a mount.
func (f *folders[S]) RemoveDir(name string) error {
	if f.leads(name) {
		return denied("remove", name)
	}
	p, inner := f.find(name)
	return p.Storage.RemoveDir(inner)
}

func (f *folders[S]) RemoveFile(name string) error {
	p, inner := f.find(name)
	return p.Storage.RemoveFile(inner)
}

// errOtherAccount is an errors.ErrUnsupported.
var errOtherAccount = fmt.Errorf("no account of S3 has both folders, so that nothing leads from one to the other but to download and upload: %w (%w)",
	errors.ErrUnsupported, syscall.EXDEV)

// Rename moves what leads to no mount, between folders where S3 can copy.
func (f *folders[S]) Rename(oldname, newname string) error {
	return f.between("rename", oldname, newname, S.RenameTo)
}

// Copy copies what leads to no mount, between folders where S3 can.
func (f *folders[S]) Copy(ctx context.Context, oldname, newname string) error {
	return f.between("copy", oldname, newname, func(from, to S, oldname, newname string) error {
		return from.CopyTo(ctx, to, oldname, newname)
	})
}

// between does something with two names where they are.
func (f *folders[S]) between(op, oldname, newname string, do func(from, to S, oldname, newname string) error) error {
	from, old := f.find(oldname)
	to, renamed := f.find(newname)
	err := errOtherAccount
	switch {
	case f.leads(oldname) || f.leads(newname):
		err = fs.ErrPermission
	case from.Account == to.Account:
		return do(from.Storage, to.Storage, old, renamed)
	}
	return &os.LinkError{Op: op, Old: oldname, New: newname, Err: err}
}

func (f *folders[S]) Hash(ctx context.Context, name, algorithm string, from, to int64) (sum []byte, end int64, err error) {
	p, inner := f.find(name)
	return p.Storage.Hash(ctx, inner, algorithm, from, to)
}

func (f *folders[S]) Create(name string) (afero.File, error) {
	p, inner := f.find(name)
	return p.Storage.Create(inner)
}

func (f *folders[S]) Open(name string) (afero.File, error) { return f.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile opens no directory that leads to mounts: its entries are those of ReadDirSeq.
func (f *folders[S]) OpenFile(name string, flag int, mode fs.FileMode) (afero.File, error) {
	p, inner := f.find(name)
	if f.leads(name) {
		return p.Storage.OpenAt(inner, flag, 0)
	}
	return p.Storage.OpenFile(inner, flag, mode)
}

func (f *folders[S]) OpenAt(name string, flag int, offset int64) (afero.File, error) {
	p, inner := f.find(name)
	return p.Storage.OpenAt(inner, flag, offset)
}

func (f *folders[S]) Chmod(name string, mode fs.FileMode) error {
	p, inner := f.find(name)
	return p.Storage.Chmod(inner, mode)
}

func (f *folders[S]) Chown(name string, uid, gid int) error {
	p, inner := f.find(name)
	return p.Storage.Chown(inner, uid, gid)
}

func (f *folders[S]) Chtimes(name string, atime, mtime time.Time) error {
	p, inner := f.find(name)
	return p.Storage.Chtimes(inner, atime, mtime)
}

// URI is that of the object.
func (f *folders[S]) URI(name string) string {
	p, inner := f.find(name)
	return p.Storage.URI(inner)
}

// Presign makes a link to the object.
func (f *folders[S]) Presign(ctx context.Context, name string, valid time.Duration) (string, error) {
	p, inner := f.find(name)
	return p.Storage.Presign(ctx, inner, valid)
}

func (f *folders[S]) Name() string { return f.mounts[len(f.mounts)-1].Storage.Name() } // that of "/"
