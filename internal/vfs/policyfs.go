package vfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/afero"
)

// PolicyFS is a storage where a user does only what the policy allows; the rest fails with [fs.ErrPermission] before S3 is asked.
//
// A user who may neither read a file nor list the directory that it is in does not learn whether it is there: not by its size or
// time (Stat), nor by going on from its middle, setting its time, renaming it. Such a user, of a drop box, knows what the session
// itself has stored, because clients ask for the size of what they have uploaded, and give it its time and its final name. And
// each directory exists for such a user, where anything may be done in it or below: one of S3 begins with its first file anyway.
//
// To replace a file is to write it. The storage is no embedded field, so that a method which is added to it is refused by the
// compiler here rather than let through.
type PolicyFS struct {
	storage ObjectStorage
	may     Policy
	form    func(name string) string // the Unicode form in which names are created

	mu     sync.Mutex
	stored []string         // what the session has stored unseen, canonical, the last keepStored of them
	kept   map[string]int64 // where it can go on with unseen uploads that broke, in bytes, as it was told
}

var _ ObjectStorage = (*PolicyFS)(nil)

// keepStored is how many files a session knows that its user cannot see. Clients ask about a file right after they have stored it.
const keepStored = 100

// NewPolicyFS puts a policy before a storage. The function form gives a name the Unicode form in which it is created.
func NewPolicyFS(storage ObjectStorage, may Policy, form func(name string) string) *PolicyFS {
	return &PolicyFS{storage: storage, may: may, form: form}
}

// denied is the error for a user who may not do something with a name.
func denied(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
}

// allow returns the error for a user who lacks a right.
func allow(right bool, op, name string) error {
	if !right {
		return denied(op, name)
	}
	return nil
}

// sees reports whether the user may know what is there under a name.
func (g *PolicyFS) sees(name string) bool {
	name = Canonical(name)
	may := g.may.At(name)
	return may.Read || may.List || g.may.At(path.Dir(name)).List || g.hasStored(name)
}

func (g *PolicyFS) hasStored(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.stored, name)
}

// store notes that the session has stored a file, or has moved one that it stored.
func (g *PolicyFS) store(name string) {
	if g.sees(name) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stored = append(g.stored[max(0, len(g.stored)-keepStored+1):], Canonical(name))
}

// allowOpen returns the error for a user who may not open a file in the way that flag and offset say.
func (g *PolicyFS) allowOpen(name string, flag int, offset int64) error {
	may := g.may.At(name)
	access := flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
	if access != os.O_WRONLY && !may.Read {
		return denied("open", name)
	}
	if writes(flag) && (!may.Write || offset > 0 && !g.sees(name) && !g.goesOn(name, offset)) {
		return denied("open", name)
	}
	return nil
}

// goesOn reports whether the session was told that a user's own upload goes on from there. It says nothing of a file of the name.
func (g *PolicyFS) goesOn(name string, offset int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return offset == g.kept[Canonical(name)]
}

// writes reports whether to open a file so may change it.
func writes(flag int) bool {
	return flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND) != 0
}

func (g *PolicyFS) Create(name string) (afero.File, error) {
	if err := allow(g.may.At(name).Write, "create", name); err != nil {
		return nil, err
	}
	file, err := g.storage.Create(name)
	if err != nil {
		return nil, err
	}
	return g.noting(file, name), nil
}

func (g *PolicyFS) Open(name string) (afero.File, error) {
	return g.OpenFile(name, os.O_RDONLY, 0)
}

func (g *PolicyFS) OpenFile(name string, flag int, mode fs.FileMode) (afero.File, error) {
	if err := g.allowOpen(name, flag, 0); err != nil {
		return nil, err
	}
	file, err := g.storage.OpenFile(name, flag, mode)
	switch {
	case err != nil:
		return nil, err
	case writes(flag):
		return g.noting(file, name), nil
	case g.may.At(name).List:
		return file, nil
	}
	if info, err := file.Stat(); err == nil && info.IsDir() { // could be listed with Readdir
		_ = file.Close()
		return nil, denied("open", name)
	}
	return file, nil
}

func (g *PolicyFS) OpenAt(name string, flag int, offset int64) (afero.File, error) {
	if err := g.allowOpen(name, flag, offset); err != nil {
		return nil, err
	}
	file, err := g.storage.OpenAt(name, flag, offset)
	if err != nil || !writes(flag) {
		return file, err
	}
	return g.noting(file, name), nil
}

// PendingUpload describes a user's own uploads that broke. Who sees no names knows of these too, and may go on with them.
func (g *PolicyFS) PendingUpload(name string) (fs.FileInfo, error) {
	if !g.may.At(name).Write {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	info, err := g.storage.PendingUpload(name)
	if err == nil && !g.sees(name) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if len(g.kept) >= keepStored || g.kept == nil {
			g.kept = map[string]int64{}
		}
		g.kept[Canonical(name)] = info.Size()
	}
	return info, err
}

// URI needs no right: it is made of the name.
func (g *PolicyFS) URI(name string) string { return g.storage.URI(name) }

// Presign makes a link, which lets others read the file.
func (g *PolicyFS) Presign(ctx context.Context, name string, valid time.Duration) (string, error) {
	if err := allow(g.may.At(name).Read, "presign", name); err != nil {
		return "", err
	}
	return g.storage.Presign(ctx, name, valid)
}

// noting notes a file that was opened for writing as stored when it is, if the user could not see it otherwise.
func (g *PolicyFS) noting(file afero.File, name string) afero.File {
	if g.sees(name) {
		return file
	}
	return &unseenFile{File: file, stored: func() { g.store(name) }}
}

// An unseenFile is open for writing by a user who sees no names. It hands on what moves data fast and what aborts an upload.
type unseenFile struct {
	afero.File
	stored func()
}

func (f *unseenFile) ReadFrom(r io.Reader) (int64, error) { return io.Copy(f.File, r) }

func (f *unseenFile) Abort(cause error) {
	if file, ok := f.File.(interface{ Abort(error) }); ok {
		file.Abort(cause)
	}
}

func (f *unseenFile) Close() error {
	err := f.File.Close()
	if err == nil {
		f.stored()
	}
	return err
}

// ReadDirSeq tells what is no directory from one that may not be listed, where the user may know.
func (g *PolicyFS) ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error) {
	if g.may.At(name).List {
		return g.storage.ReadDirSeq(name)
	}
	if g.sees(name) {
		if _, err := g.storage.StatDir(name); err != nil {
			return nil, err
		}
	}
	return nil, denied("readdir", name)
}

// Mkdir succeeds where something is already that the user does not see: there each directory exists.
func (g *PolicyFS) Mkdir(name string, mode fs.FileMode) error {
	if err := allow(g.may.At(name).Mkdir, "mkdir", name); err != nil {
		return err
	}
	err := g.storage.Mkdir(name, mode)
	if errors.Is(err, fs.ErrExist) && !g.sees(name) {
		return nil
	}
	return err
}

// MkdirAll makes parents too, so each of them must be there or one that the user may make.
func (g *PolicyFS) MkdirAll(name string, mode fs.FileMode) error {
	if err := allow(g.may.At(name).Mkdir, "mkdir", name); err != nil {
		return err
	}
	for dir := path.Dir(Canonical(name)); dir != "/"; dir = path.Dir(dir) {
		if g.may.At(dir).Mkdir {
			continue
		}
		if _, err := g.StatDir(dir); err != nil {
			return denied("mkdir", name)
		}
	}
	err := g.storage.MkdirAll(name, mode)
	if errors.Is(err, syscall.ENOTDIR) && !g.sees(name) {
		return nil
	}
	return err
}

func (g *PolicyFS) Remove(name string) error {
	if err := allow(g.may.At(name).Delete, "remove", name); err != nil {
		return err
	}
	return g.storage.Remove(name)
}

// RemoveAll needs the right for everything that may be there.
func (g *PolicyFS) RemoveAll(name string) error {
	least, _ := g.may.Bounds(name)
	if err := allow(least.Delete, "remove", name); err != nil {
		return err
	}
	return g.storage.RemoveAll(name)
}

func (g *PolicyFS) RemoveFile(name string) error {
	if err := allow(g.may.At(name).Delete, "remove", name); err != nil {
		return err
	}
	return g.storage.RemoveFile(name)
}

func (g *PolicyFS) RemoveDir(name string) error {
	if err := allow(g.may.At(name).Delete, "remove", name); err != nil {
		return err
	}
	return g.storage.RemoveDir(name)
}

func (g *PolicyFS) Rename(oldname, newname string) error {
	if err := g.allowPair("rename", oldname, newname, moves); err != nil {
		return err
	}
	unseen := g.hasStored(Canonical(oldname))
	err := g.storage.Rename(oldname, newname)
	if err == nil && unseen {
		g.store(newname)
	}
	return err
}

// allowPair needs the rights that may asks for, of everything below oldname and at every place below newname to which it goes.
func (g *PolicyFS) allowPair(op, oldname, newname string, may func(from, to, most Rights) bool) error {
	if !g.sees(oldname) {
		return denied(op, oldname)
	}
	from, _ := g.may.Bounds(oldname)
	to, most := g.may.Bounds(newname)
	if may(from, to, most) {
		return nil
	}
	from, to = g.may.At(oldname), g.may.At(newname)
	if !may(from, to, to) {
		return denied(op, oldname)
	}
	// What is in the way is about names below, and a file has none.
	_, err := g.storage.StatDir(oldname)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		return denied(op, oldname)
	}
	return err
}

// moves reports whether a user may move what there are rights for to where there are at least and at most others. What may not be
// read or deleted in one place does not become so by being moved to another.
func moves(from, to, most Rights) bool {
	return from.Rename && to.Write && (from.Read || !most.Read) && (from.Delete || !most.Delete)
}

func (g *PolicyFS) Copy(ctx context.Context, oldname, newname string) error {
	if err := g.allowPair("copy", oldname, newname, copies); err != nil {
		return err
	}
	return g.storage.Copy(ctx, oldname, newname)
}

// copies reports whether a user may copy what there are rights for to where there are others.
func copies(from, to, _ Rights) bool { return from.Read && to.Write }

func (g *PolicyFS) Hash(ctx context.Context, name, algorithm string, from, to int64) (sum []byte, end int64, err error) {
	if err := allow(g.may.At(name).Read, "hash", name); err != nil {
		return nil, 0, err
	}
	return g.storage.Hash(ctx, name, algorithm, from, to)
}

func (g *PolicyFS) Chmod(name string, mode fs.FileMode) error {
	if err := allow(g.may.At(name).Write && g.sees(name), "chmod", name); err != nil {
		return err
	}
	return g.storage.Chmod(name, mode)
}

func (g *PolicyFS) Chown(name string, uid, gid int) error {
	if err := allow(g.may.At(name).Write && g.sees(name), "chown", name); err != nil {
		return err
	}
	return g.storage.Chown(name, uid, gid)
}

func (g *PolicyFS) Chtimes(name string, atime, mtime time.Time) error {
	if err := allow(g.may.At(name).Write && g.sees(name), "chtimes", name); err != nil {
		return err
	}
	return g.storage.Chtimes(name, atime, mtime)
}

func (g *PolicyFS) Stat(name string) (fs.FileInfo, error) {
	if !g.sees(name) {
		return nil, denied("stat", name)
	}
	return g.storage.Stat(name)
}

func (g *PolicyFS) StatFile(name string) (fs.FileInfo, error) {
	if !g.sees(name) {
		return nil, denied("stat", name)
	}
	return g.storage.StatFile(name)
}

// StatDir is asked before a directory becomes the working directory.
func (g *PolicyFS) StatDir(name string) (fs.FileInfo, error) {
	if g.sees(name) {
		return g.storage.StatDir(name)
	}
	if _, most := g.may.Bounds(name); most == (Rights{}) {
		return nil, denied("stat", name)
	}
	if g.form(name) != name { // in that form it would be made
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return Directory(path.Base(Canonical(name))), nil
}

func (g *PolicyFS) Name() string { return g.storage.Name() }
