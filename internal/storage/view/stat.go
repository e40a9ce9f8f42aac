package view

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"path"
	"time"

	"github.com/babelftp/babelftp/driver"
)

// Stat checks for a file, and then for a directory. Clients use it before they create a directory, so it does not find
// a directory that another user removed, although changing into it, listing it and removing it still work.
func (f *Files) Stat(name string) (fs.FileInfo, error) {
	t := f.resolve(name)
	if !f.canSee(t) {
		return nil, t.deniedError("stat")
	}
	f.await(t)
	info, err := f.statOrMount(t, t.mount.Store.Stat)
	switch {
	case err == nil && info.IsDir():
		f.Directories.seePath(t.name)
	case err == nil:
		f.Directories.seeParent(t.name)
	case f.vanished(t, err, true):
		return Directory(path.Base(t.name)), nil
	}
	return info, err
}

// StatToRename checks for a file or directory that the user may rename.
func (f *Files) StatToRename(name string) (fs.FileInfo, error) {
	switch t := f.resolve(name); {
	case t.name == "/" || f.Fixed(name):
		return nil, t.fail("rename", ErrFixed)
	case !f.Rights(name).Rename:
		return nil, t.deniedError("rename")
	}
	return f.Stat(name)
}

// StatFile checks for a file only.
func (f *Files) StatFile(name string) (fs.FileInfo, error) {
	t := f.resolve(name)
	if !f.canSee(t) {
		return nil, t.deniedError("stat")
	}
	f.await(t)
	info, err := t.mount.Store.StatFile(f.ctx, t.inner)
	if err != nil {
		return nil, t.replacePath(err)
	}
	f.Directories.seeParent(t.name)
	return info, nil
}

// StatDir checks for a directory only. CWD uses it.
func (f *Files) StatDir(name string) (fs.FileInfo, error) {
	t := f.resolve(name)
	if f.canSee(t) {
		return f.statDir(t)
	}
	if _, most := f.bounds(t); most == (Rights{}) {
		return nil, t.deniedError("stat")
	}
	// The name must be in the form in which it would be created, and must be possible for an object.
	if f.Form(t.name) != t.name || t.uri() == "" {
		return nil, t.fail("stat", fs.ErrNotExist)
	}
	return Directory(path.Base(t.canonical)), nil
}

// statDir checks for a directory that the user may know about.
func (f *Files) statDir(t *target) (fs.FileInfo, error) {
	info, err := f.statOrMount(t, t.mount.Store.StatDir)
	switch {
	case err == nil:
		f.Directories.seePath(t.name)
	case f.vanished(t, err, false):
		return Directory(path.Base(t.name)), nil
	}
	return info, err
}

// statOrMount returns file information for a directory that leads to mounts, if the store has no such directory.
func (f *Files) statOrMount(
	t *target, stat func(ctx context.Context, name string) (fs.FileInfo, error),
) (fs.FileInfo, error) {
	if t.fixed && t.inner == "/" {
		return Directory(path.Base(t.name)), nil
	}
	info, err := stat(f.ctx, t.inner)
	if t.fixed && errors.Is(err, fs.ErrNotExist) {
		return Directory(path.Base(t.name)), nil
	}
	return info, t.replacePath(err)
}

// vanished reports whether err only means that S3 has nothing below a directory that the sessions know. A file that
// now has the name ends the directory. If byUser is set, the directory only counts if a session of the user emptied
// it.
func (f *Files) vanished(t *target, err error, byUser bool) bool {
	if !errors.Is(err, fs.ErrNotExist) || t.past {
		return false
	}
	if leadsTo(t.name, f.Directories.home) {
		return true
	}
	if seen, emptied := f.Directories.seen(t.name); !seen || byUser && !emptied {
		return false
	}
	_, err = t.mount.Store.StatFile(f.ctx, t.inner)
	if err == nil {
		f.Directories.remove(t.name)
	}
	return errors.Is(err, fs.ErrNotExist)
}

// List reads the first page of a directory, and further pages while the caller ranges over the sequence, which is
// possible only once. It reports a missing directory only to a user who may know about it.
//
// A vanished directory is not in the listing of its parent. Otherwise it would stay in there even if another session
// had removed it.
func (f *Files) List(name string) (iter.Seq2[fs.FileInfo, error], error) {
	t := f.resolve(name)
	if !t.rights.List {
		if f.canSee(t) {
			if _, err := f.statDir(t); err != nil {
				return nil, err
			}
		}
		return nil, t.deniedError("readdir")
	}
	if t.past && t.name == f.Past.Dir {
		return f.Past.list, nil
	}
	entries, err := t.mount.Store.List(f.ctx, t.inner)
	own, hides := f.Mounts.in(t.today)
	own, hides = f.withPast(t, own, hides)
	if len(own) > 0 && errors.Is(err, fs.ErrNotExist) {
		entries, err = noEntries, nil
	}
	if f.vanished(t, err, false) {
		return noEntries, nil
	}
	if err != nil {
		return nil, t.replacePath(err)
	}
	if len(own)+len(hides) > 0 {
		entries = withMounts(entries, own, hides)
	}
	f.Directories.seePath(t.name)
	return func(yield func(fs.FileInfo, error) bool) {
		for info, err := range entries {
			if err == nil && info.IsDir() {
				f.Directories.see(path.Join(t.name, info.Name()))
			}
			if !yield(info, t.replacePath(err)) {
				return
			}
		}
	}, nil
}

// PendingUpload describes an interrupted upload of the user. Users without permission to list names may still see and
// resume their own uploads.
func (f *Files) PendingUpload(name string) (fs.FileInfo, error) {
	t := f.resolve(name)
	if !t.rights.Write || f.objectFor(t, driver.Uploaded) != "" {
		return nil, t.fail("stat", fs.ErrNotExist)
	}
	f.await(t)
	info, err := t.mount.Store.PendingUpload(f.ctx, t.inner)
	if err != nil {
		return nil, t.replacePath(err)
	}
	if !f.canSee(t) {
		f.unseen.report(t.canonical, info.Size())
	}
	return info, nil
}

// Hash returns the hash of the bytes [from, to) of a file, and the end of the range. If to is negative or beyond the
// end, the range ends with the file.
func (f *Files) Hash(name, algorithm string, from, to int64) (sum []byte, end int64, err error) {
	t := f.resolve(name)
	if !t.rights.Read {
		return nil, 0, t.deniedError("hash")
	}
	sum, end, err = t.mount.Store.Hash(f.ctx, t.inner, algorithm, from, to)
	return sum, end, t.replacePath(err)
}

// Presign returns an HTTPS link to a file, which is valid for this time. It needs the right to read, because the link
// lets others read the file.
func (f *Files) Presign(name string, valid time.Duration) (string, error) {
	t := f.resolve(name)
	if !t.rights.Read || t.past {
		return "", f.report(t, t.deniedChange("presign"))
	}
	link, err := t.mount.Store.Presign(f.ctx, t.inner, valid)
	return link, f.report(t, t.replacePath(err))
}
