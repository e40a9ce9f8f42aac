package vfs

import (
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"iter"
	"path"
	"sync"

	"github.com/spf13/afero"
)

// Directories are the directories that exist for a login although S3 may have nothing below them: the home of the user with those above it.
// What the login has seen as a directory is one of them too, until the login removes it.
//
// A directory of S3 without a marker begins with its first object and ends with its last one. To a client it has vanished by the DELE of a file
// in it. A client that deletes a tree sends RMD next, and gives up after a 550. And a session that is in such a directory could not even leave it.
type Directories struct {
	home string // absolute and clean
	seed maphash.Seed

	mu sync.Mutex
	// recent and older have the hashes of the pathnames that were seen, each at most maxSeen. When recent is full it becomes older, so what was not
	// seen for long is forgotten. A hash takes few bytes, so that a session which has listed a large tree holds little memory.
	recent, older map[uint64]struct{}
}

// maxSeen is how many directories a login remembers at least, once it has seen so many. Some clients delete all files of a tree first, and then its
// directories.
const maxSeen = 8192

// NewDirectories returns what exists at the beginning of a login: its home, which is "/" if home is empty. A user must be able to log in to upload
// the first file.
func NewDirectories(home string) *Directories {
	return &Directories{home: path.Clean("/" + home), seed: maphash.MakeSeed()}
}

// see remembers a directory.
func (d *Directories) see(dir string) {
	h := maphash.String(d.seed, path.Clean("/"+dir))
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.recent) >= maxSeen {
		d.recent, d.older = nil, d.recent
	}
	if d.recent == nil {
		d.recent = make(map[uint64]struct{})
	}
	d.recent[h] = struct{}{}
}

// seePath remembers a directory and all those above it.
func (d *Directories) seePath(dir string) {
	for dir = path.Clean("/" + dir); dir != "/"; dir = path.Dir(dir) {
		d.see(dir)
	}
}

// seeParent remembers the directory of a file.
func (d *Directories) seeParent(name string) { d.seePath(path.Dir(path.Clean("/" + name))) }

// forget is for a directory that the login has removed.
func (d *Directories) forget(dir string) {
	h := maphash.String(d.seed, path.Clean("/"+dir))
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.recent, h)
	delete(d.older, h)
}

// seen reports whether the login has seen a directory, in this spelling of its name, and has not removed it.
func (d *Directories) seen(dir string) bool {
	h := maphash.String(d.seed, path.Clean("/"+dir))
	d.mu.Lock()
	defer d.mu.Unlock()
	_, recent := d.recent[h]
	_, older := d.older[h]
	return recent || older
}

// leadsHome reports whether a pathname is the home or a directory above it.
func (d *Directories) leadsHome(name string) bool { return LeadsTo(name, d.home) }

// directoryFS lets directories exist that a login knows.
type directoryFS struct {
	ObjectStorage
	known *Directories
}

// NewDirectoryFS lets the directories that a login knows exist in a storage, and remembers those that are seen through it.
func NewDirectoryFS(storage ObjectStorage, known *Directories) ObjectStorage {
	return &directoryFS{ObjectStorage: storage, known: known}
}

// vanished reports whether err says only that S3 has nothing below a directory that the login knows. A file that has the name now ends the directory.
func (f *directoryFS) vanished(name string, err error) bool {
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return false
	case f.known.leadsHome(name):
		return true
	case !f.known.seen(name):
		return false
	}
	_, err = f.ObjectStorage.StatFile(name)
	if err == nil {
		f.known.forget(name)
	}
	return errors.Is(err, fs.ErrNotExist)
}

func (f *directoryFS) Stat(name string) (fs.FileInfo, error) {
	info, err := f.ObjectStorage.Stat(name)
	switch {
	case err == nil && info.IsDir():
		f.known.seePath(name)
	case err == nil:
		f.known.seeParent(name)
	case f.vanished(name, err):
		return Directory(path.Base(path.Clean("/" + name))), nil
	}
	return info, err
}

func (f *directoryFS) StatFile(name string) (fs.FileInfo, error) {
	info, err := f.ObjectStorage.StatFile(name)
	if err == nil {
		f.known.seeParent(name)
	}
	return info, err
}

func (f *directoryFS) StatDir(name string) (fs.FileInfo, error) {
	info, err := f.ObjectStorage.StatDir(name)
	switch {
	case err == nil:
		f.known.seePath(name)
	case f.vanished(name, err):
		return Directory(path.Base(path.Clean("/" + name))), nil
	}
	return info, err
}

func (f *directoryFS) OpenAt(name string, flag int, offset int64) (afero.File, error) {
	file, err := f.ObjectStorage.OpenAt(name, flag, offset)
	if err == nil && !writes(flag) {
		f.known.seeParent(name)
	}
	return file, err
}

// ReadDirSeq remembers the directories that it lists. In the listing of the directory above, one that has vanished does not show: it would stay there
// also when another session has removed it.
func (f *directoryFS) ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error) {
	entries, err := f.ObjectStorage.ReadDirSeq(name)
	if f.vanished(name, err) {
		return func(func(fs.FileInfo, error) bool) {}, nil
	}
	if err != nil {
		return nil, err
	}
	f.known.seePath(name)
	return func(yield func(fs.FileInfo, error) bool) {
		for info, err := range entries {
			if err == nil && info.IsDir() {
				f.known.see(path.Join("/", name, info.Name()))
			}
			if !yield(info, err) {
				return
			}
		}
	}, nil
}

func (f *directoryFS) Mkdir(name string, mode fs.FileMode) error {
	err := f.ObjectStorage.Mkdir(name, mode)
	if err == nil {
		f.known.seePath(name)
	}
	return err
}

func (f *directoryFS) MkdirAll(name string, mode fs.FileMode) error {
	err := f.ObjectStorage.MkdirAll(name, mode)
	if err == nil {
		f.known.seePath(name)
	}
	return err
}

// RemoveFile may take the directories above the file with it. They stay for the login, whether it has seen them before or not.
func (f *directoryFS) RemoveFile(name string) error {
	err := f.ObjectStorage.RemoveFile(name)
	if err == nil {
		f.known.seeParent(name)
	}
	return err
}

// RemoveDir succeeds for a directory that was seen and has vanished since. The storage has looked for a file of the name itself.
func (f *directoryFS) RemoveDir(name string) error {
	err := f.ObjectStorage.RemoveDir(name)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || !f.known.seen(name)) {
		return err
	}
	f.known.forget(name)
	f.known.seeParent(name)
	return nil
}

func (f *directoryFS) RemoveAll(name string) error {
	err := f.ObjectStorage.RemoveAll(name)
	if err == nil {
		f.known.forget(name)
		f.known.seeParent(name)
	}
	return err
}

// Rename may take the directories above the old name with it, as RemoveFile does.
func (f *directoryFS) Rename(oldname, newname string) error {
	err := f.ObjectStorage.Rename(oldname, newname)
	if err == nil {
		f.known.forget(oldname)
		f.known.seeParent(oldname)
		f.known.seeParent(newname)
	}
	return err
}

func (f *directoryFS) Copy(ctx context.Context, oldname, newname string) error {
	err := f.ObjectStorage.Copy(ctx, oldname, newname)
	if err == nil {
		f.known.seeParent(newname)
	}
	return err
}
