package view

import (
	"hash/maphash"
	"path"
	"sync"
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
// once. Pathnames are absolute and clean.
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
	h := maphash.String(d.seed, dir)
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
	for ; dir != "/"; dir = path.Dir(dir) {
		d.see(dir)
	}
}

// seeParent remembers the directory of a file that is there.
func (d *Directories) seeParent(name string) { d.seePath(path.Dir(name)) }

// noteRemoval is for a name that a session has removed, or renamed: the directories above it may have vanished by that.
func (d *Directories) noteRemoval(name string) {
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
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
