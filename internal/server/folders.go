package server

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
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/s3client"
	"github.com/babelftp/babelftp/internal/vfs"
)

// A mount is a directory under which a user sees a bucket, or a part of one.
type mount struct {
	at     string // absolute, as the user sees it
	bucket *s3client.Bucket
	prefix string // of the keys
}

// mountsOf is what a user sees who has root, of the tenant whose bucket it is, as "/": the folders below, and at last what is there.
func mountsOf(b *s3client.Bucket, root string, form func(name string) string) []mount {
	root = path.Clean("/" + root)
	whole := mount{at: "/", bucket: b, prefix: b.Prefix + keyPrefix(root)}
	around := ""
	var below []mount
	for _, f := range b.Folders {
		folder := canonical(f.Folder)
		if rest, ok := within(canonical(root), folder); ok {
			if len(folder) > len(around) {
				around = folder
				whole = mount{at: "/", bucket: f, prefix: f.Prefix + keyPrefix(sameEnd(root, rest))}
			}
		} else if rest, ok := within(folder, canonical(root)); ok {
			below = append(below, mount{at: form(sameEnd(f.Folder, rest)), bucket: f, prefix: f.Prefix})
		}
	}
	return append(below, whole)
}

// sameEnd is the last segments of a pathname, as many as end has, in the Unicode form that they have there.
func sameEnd(name, end string) string {
	if end == "/" {
		return end
	}
	all := strings.Split(name, "/")
	return "/" + strings.Join(all[len(all)-strings.Count(end, "/"):], "/")
}

// keyPrefix is what the keys below a directory begin with, behind the prefix of the bucket.
func keyPrefix(dir string) string {
	if dir = strings.Trim(dir, "/"); dir == "" {
		return ""
	}
	return dir + "/"
}

// within is the pathname that name has for who sees dir as "/", or false if it is not in there. Both are absolute and clean.
func within(name, dir string) (string, bool) {
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

// folderRules is the layer of a policy that keeps users to the permissions of the folders.
func folderRules(folders map[string]*config.Folder) rules {
	plain := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
	byPath := map[string][]config.Permission{}
	for name, f := range folders {
		permissions := f.Permissions
		if permissions == nil {
			permissions = config.AllPermissions() // also in a folder that has fewer
		}
		byPath[plain.Replace(norm.NFC.String(name))] = permissions
	}
	return newRules(nil, byPath)
}

// objects is a storage whose files have addresses in S3.
type objects interface {
	vfs.Storage
	URI(name string) string
	Presign(ctx context.Context, name string, valid time.Duration) (string, error)
	PendingUpload(name string) (fs.FileInfo, error)
}

// folders is a storage that is made of several: each pathname is in the one that is mounted the deepest above it. What another one
// has there is hidden by it.
//
// The directory of a mount, and each above it, exists although no object is in it, and can be neither removed nor renamed.
type folders struct {
	mounts []mount
	parts  []part // the deepest first
}

// A part is what is mounted in one place.
type part struct {
	mount
	storage *driver.Fs
}

var (
	_ objects = (*folders)(nil)
	_ objects = (*driver.Fs)(nil)
)

// newFolders mounts storages, which open makes. A single one needs no more.
func newFolders(mounts []mount, open func(b *s3client.Bucket, prefix string) *driver.Fs) objects {
	if len(mounts) == 1 {
		return open(mounts[0].bucket, mounts[0].prefix)
	}
	f := &folders{mounts: mounts}
	for _, m := range mounts {
		f.parts = append(f.parts, part{m, open(m.bucket, m.prefix)})
	}
	slices.SortFunc(f.parts, func(a, b part) int { return len(b.at) - len(a.at) }) // of those above a name, the deepest is the longest
	return f
}

// find returns where a pathname is, and what it is called there.
func (f *folders) find(name string) (p part, inner string) {
	name = path.Clean("/" + name)
	for _, p := range f.parts {
		if inner, ok := within(name, p.at); ok {
			return p, inner
		}
	}
	panic("server: a storage without a root")
}

// leads reports whether a pathname is that of a directory where something is mounted, or of one above.
func (f *folders) leads(name string) bool { return leadsToMount(name, f.mounts) }

func leadsToMount(name string, mounts []mount) bool {
	name = path.Clean("/" + name)
	return slices.ContainsFunc(mounts, func(m mount) bool {
		_, ok := within(m.at, name)
		return ok && m.at != "/"
	})
}

// ReadDirSeq puts the directories that lead to mounts among the entries, in the order of keys, and leaves out what they hide.
func (f *folders) ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error) {
	p, inner := f.find(name)
	entries, err := p.storage.ReadDirSeq(inner)
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
				if !yield(vfs.Directory(strings.TrimSuffix(left[0], "/")), nil) {
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
			if !yield(vfs.Directory(strings.TrimSuffix(key, "/")), nil) {
				return
			}
		}
	}, nil
}

// inside is the directories in a directory that lead to mounts, sorted, as keys end: with a slash. Where one is mounted itself a file of
// its name is hidden.
func (f *folders) inside(name string) (own, hides []string) {
	name = path.Clean("/" + name)
	for _, m := range f.mounts {
		rest, ok := within(m.at, name)
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

func (f *folders) Stat(name string) (fs.FileInfo, error) {
	p, inner := f.find(name)
	return f.orMount(name, inner, p.storage.Stat)
}

func (f *folders) StatDir(name string) (fs.FileInfo, error) {
	p, inner := f.find(name)
	return f.orMount(name, inner, p.storage.StatDir)
}

// orMount describes a directory that leads to mounts where there is no other.
func (f *folders) orMount(name, inner string, stat func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	leads := f.leads(name)
	if leads && inner == "/" {
		return vfs.Directory(path.Base(path.Clean("/" + name))), nil
	}
	info, err := stat(inner)
	if leads && errors.Is(err, fs.ErrNotExist) {
		return vfs.Directory(path.Base(inner)), nil
	}
	return info, err
}

func (f *folders) StatFile(name string) (fs.FileInfo, error) {
	p, inner := f.find(name)
	return p.storage.StatFile(inner)
}

func (f *folders) PendingUpload(name string) (fs.FileInfo, error) {
	p, inner := f.find(name)
	return p.storage.PendingUpload(inner)
}

func (f *folders) Mkdir(name string, mode fs.FileMode) error {
	if f.leads(name) {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	}
	p, inner := f.find(name)
	return p.storage.Mkdir(inner, mode)
}

func (f *folders) MkdirAll(name string, mode fs.FileMode) error {
	if f.leads(name) {
		return nil
	}
	p, inner := f.find(name)
	return p.storage.MkdirAll(inner, mode)
}

// Remove does not remove what leads to a mount.
func (f *folders) Remove(name string) error {
	if f.leads(name) {
		return denied("remove", name)
	}
	p, inner := f.find(name)
	return p.storage.Remove(inner)
}

// RemoveAll does not remove what leads to a mount, because the mount would go too.
func (f *folders) RemoveAll(name string) error {
	if f.leads(name) {
		return denied("remove", name)
	}
	p, inner := f.find(name)
	return p.storage.RemoveAll(inner)
}

// RemoveDir does not remove what leads to a mount.
func (f *folders) RemoveDir(name string) error {
	if f.leads(name) {
		return denied("remove", name)
	}
	p, inner := f.find(name)
	return p.storage.RemoveDir(inner)
}

func (f *folders) RemoveFile(name string) error {
	p, inner := f.find(name)
	return p.storage.RemoveFile(inner)
}

// errOtherAccount is an errors.ErrUnsupported.
var errOtherAccount = fmt.Errorf("no account of S3 has both folders, so that nothing leads from one to the other but to download and upload: %w (%w)",
	errors.ErrUnsupported, syscall.EXDEV)

// Rename moves what leads to no mount, between folders where S3 can copy.
func (f *folders) Rename(oldname, newname string) error {
	return f.between("rename", oldname, newname, (*driver.Fs).RenameTo)
}

// Copy copies what leads to no mount, between folders where S3 can.
func (f *folders) Copy(ctx context.Context, oldname, newname string) error {
	return f.between("copy", oldname, newname, func(from, to *driver.Fs, oldname, newname string) error {
		return from.CopyTo(ctx, to, oldname, newname)
	})
}

// between does something with two names where they are.
func (f *folders) between(op, oldname, newname string, do func(from, to *driver.Fs, oldname, newname string) error) error {
	from, old := f.find(oldname)
	to, renamed := f.find(newname)
	err := errOtherAccount
	switch {
	case f.leads(oldname) || f.leads(newname):
		err = fs.ErrPermission
	case from.bucket.Client == to.bucket.Client:
		return do(from.storage, to.storage, old, renamed)
	}
	return &os.LinkError{Op: op, Old: oldname, New: newname, Err: err}
}

func (f *folders) Hash(ctx context.Context, name, algorithm string, from, to int64) (sum []byte, end int64, err error) {
	p, inner := f.find(name)
	return p.storage.Hash(ctx, inner, algorithm, from, to)
}

func (f *folders) Create(name string) (afero.File, error) {
	p, inner := f.find(name)
	return p.storage.Create(inner)
}

func (f *folders) Open(name string) (afero.File, error) { return f.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile opens no directory that leads to mounts: its entries are those of ReadDirSeq.
func (f *folders) OpenFile(name string, flag int, mode fs.FileMode) (afero.File, error) {
	p, inner := f.find(name)
	if f.leads(name) {
		return p.storage.OpenAt(inner, flag, 0)
	}
	return p.storage.OpenFile(inner, flag, mode)
}

func (f *folders) OpenAt(name string, flag int, offset int64) (afero.File, error) {
	p, inner := f.find(name)
	return p.storage.OpenAt(inner, flag, offset)
}

func (f *folders) Chmod(name string, mode fs.FileMode) error {
	p, inner := f.find(name)
	return p.storage.Chmod(inner, mode)
}

func (f *folders) Chown(name string, uid, gid int) error {
	p, inner := f.find(name)
	return p.storage.Chown(inner, uid, gid)
}

func (f *folders) Chtimes(name string, atime, mtime time.Time) error {
	p, inner := f.find(name)
	return p.storage.Chtimes(inner, atime, mtime)
}

// URI is that of the object.
func (f *folders) URI(name string) string {
	p, inner := f.find(name)
	return p.storage.URI(inner)
}

// Presign makes a link to the object.
func (f *folders) Presign(ctx context.Context, name string, valid time.Duration) (string, error) {
	p, inner := f.find(name)
	return p.storage.Presign(ctx, inner, valid)
}

func (f *folders) Name() string { return f.parts[len(f.parts)-1].storage.Name() } // that of "/"
