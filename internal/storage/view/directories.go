package view

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

// Directories are the directories that exist for the sessions of a user although S3 may have nothing below them.
// These are the home of the user, those above it, and what a session has seen as a directory, until a session removes
// or renames it.
//
// A directory of S3 without a marker begins with its first object and ends with its last one. To a client it has
// vanished by the DELE of a file in it. A client that deletes a tree sends RMD next, and gives up after a 550. And a
// session that is in such a directory could not even leave it.
//
// The sessions of a user on one replica share Directories, because many clients work through several connections at
// once.
type Directories struct {
	home string // absolute and clean
	seed maphash.Seed

	mu       sync.Mutex
	sessions int
	clock    uint64 // counts what happens
	// recent and older have the directories by the hashes of their pathnames, each at most maxSeen. When recent is
	// full it becomes older, so what was not seen for long is forgotten. A hash takes few bytes, so that a session
	// which has listed a large tree holds little memory.
	recent, older map[uint64]sighting
}

// A sighting is what the sessions know of a directory. The times are those of the clock, 0 for never.
type sighting struct {
	seen    uint64 // when it was there last
	removed uint64 // when a session removed or renamed it last, with all that was below it
	emptied bool   // since it was seen, a session has removed or renamed something in it
}

// maxSeen is how many directories the sessions remember at least, once they have seen so many. Some clients delete
// all files of a tree first, and then its directories.
const maxSeen = 8192

// NewDirectories returns what exists for a user without sessions: its home, which is "/" if home is empty. A user
// must be able to log in to upload the first file.
func NewDirectories(home string) *Directories {
	return &Directories{home: path.Clean("/" + home), seed: maphash.MakeSeed()}
}

// Enter counts a session of the user until it leaves. When the last one leaves, all but the home is forgotten.
func (d *Directories) Enter() (leave func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.sessions--; d.sessions == 0 {
			d.recent, d.older = nil, nil
		}
	}
}

// note changes what is known of a directory.
func (d *Directories) note(dir string, change func(s *sighting, now uint64)) {
	h := maphash.String(d.seed, path.Clean("/"+dir))
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.get(h)
	d.clock++
	change(&s, d.clock)
	if len(d.recent) >= maxSeen {
		d.recent, d.older = nil, d.recent
	}
	if d.recent == nil {
		d.recent = make(map[uint64]sighting)
	}
	d.recent[h] = s
}

// get returns what is known by a hash. The caller holds the lock.
func (d *Directories) get(hash uint64) sighting {
	if s, ok := d.recent[hash]; ok {
		return s
	}
	return d.older[hash]
}

// see remembers a directory that is there.
func (d *Directories) see(dir string) {
	d.note(dir, func(s *sighting, now uint64) { s.seen, s.emptied = now, false })
}

// seePath remembers a directory and all those above it.
func (d *Directories) seePath(dir string) {
	for dir = path.Clean("/" + dir); dir != "/"; dir = path.Dir(dir) {
		d.see(dir)
	}
}

// seeParent remembers the directory of a file that is there.
func (d *Directories) seeParent(name string) { d.seePath(path.Dir(path.Clean("/" + name))) }

// noteRemoval is for a name that a session has removed, or renamed: the directories above it may have vanished by that.
func (d *Directories) noteRemoval(name string) {
	for dir := path.Dir(path.Clean("/" + name)); dir != "/"; dir = path.Dir(dir) {
		d.note(dir, func(s *sighting, now uint64) { s.seen, s.emptied = now, true })
	}
}

// remove is for a directory that a session has removed or renamed, with all that was below it.
func (d *Directories) remove(dir string) {
	d.note(dir, func(s *sighting, now uint64) { s.removed = now })
}

// seen reports whether a session has seen a directory, in this spelling of its name, and none has removed it since.
// It has been emptied if that is what may have let it vanish.
func (d *Directories) seen(dir string) (seen, emptied bool) {
	dir = path.Clean("/" + dir)
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.get(maphash.String(d.seed, dir))
	if of.seen == 0 {
		return false, false
	}
	for ; dir != "/"; dir = path.Dir(dir) {
		if d.get(maphash.String(d.seed, dir)).removed > of.seen {
			return false, false
		}
	}
	return true, of.emptied
}

// leadsHome reports whether a pathname is the home or a directory above it.
func (d *Directories) leadsHome(name string) bool { return LeadsTo(name, d.home) }

// directoryFS lets directories exist that the sessions of a user know.
type directoryFS struct {
	ObjectStorage
	known *Directories
}

// NewDirectoryFS lets the directories that the sessions of a user know exist in a storage, and remembers those that
// are seen through it.
func NewDirectoryFS(storage ObjectStorage, known *Directories) ObjectStorage {
	return &directoryFS{ObjectStorage: storage, known: known}
}

// vanished reports whether err says only that S3 has nothing below a directory that the sessions know. A file that
// has the name now ends the directory. If byUser is set, only a directory counts that a session of the user has
// emptied.
func (f *directoryFS) vanished(name string, err error, byUser bool) bool {
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if f.known.leadsHome(name) {
		return true
	}
	if seen, emptied := f.known.seen(name); !seen || byUser && !emptied {
		return false
	}
	_, err = f.ObjectStorage.StatFile(name)
	if err == nil {
		f.known.remove(name)
	}
	return errors.Is(err, fs.ErrNotExist)
}

// Stat is what clients ask before they make a directory, so one that another user has removed is not there. To change
// into it, to list it and to remove it works.
func (f *directoryFS) Stat(name string) (fs.FileInfo, error) {
	info, err := f.ObjectStorage.Stat(name)
	switch {
	case err == nil && info.IsDir():
		f.known.seePath(name)
	case err == nil:
		f.known.seeParent(name)
	case f.vanished(name, err, true):
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
	case f.vanished(name, err, false):
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

// ReadDirSeq remembers the directories that it lists. In the listing of the directory above, one that has vanished
// does not show: it would stay there also when another session has removed it.
func (f *directoryFS) ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error) {
	entries, err := f.ObjectStorage.ReadDirSeq(name)
	if f.vanished(name, err, false) {
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

// RemoveFile may take the directories above the file with it. They stay for the user, whether a session has seen them
// before or not.
func (f *directoryFS) RemoveFile(name string) error {
	err := f.ObjectStorage.RemoveFile(name)
	if err == nil {
		f.known.noteRemoval(name)
	}
	return err
}

// RemoveDir succeeds for a directory that was seen and has vanished since. The storage has looked for a file of the
// name itself.
func (f *directoryFS) RemoveDir(name string) error {
	err := f.ObjectStorage.RemoveDir(name)
	if seen, _ := f.known.seen(name); err != nil && (!errors.Is(err, fs.ErrNotExist) || !seen) {
		return err
	}
	f.known.remove(name)
	f.known.noteRemoval(name)
	return nil
}

func (f *directoryFS) RemoveAll(name string) error {
	err := f.ObjectStorage.RemoveAll(name)
	if err == nil {
		f.known.remove(name)
		f.known.noteRemoval(name)
	}
	return err
}

// Rename may take the directories above the old name with it, as RemoveFile does.
func (f *directoryFS) Rename(oldname, newname string) error {
	err := f.ObjectStorage.Rename(oldname, newname)
	if err == nil {
		f.known.remove(oldname)
		f.known.noteRemoval(oldname)
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
