package view

import (
	"hash/maphash"
	"path"
	"sync"
)

// Directories tracks the directories that exist for the sessions of a user even if S3 has nothing below them. These
// are the user's home, its parents, and all directories that a session has seen and not removed or renamed since.
//
// Without a marker object, a directory in S3 exists as long as it contains objects. Therefore a DELE of the last file
// would also remove the directory. A client that deletes a tree sends RMD next, and would give up after a 550 reply. A
// session in such a directory could not even leave it.
//
// The sessions of a user on one replica share Directories, because many clients use several connections. Pathnames are
// absolute and clean.
type Directories struct {
	home string // absolute and clean
	seed maphash.Seed

	mu       sync.Mutex
	sessions int
	clock    uint64 // counts events
	// recent and older map the hashes of pathnames, with at most maxSeen entries each. When recent is full, it becomes
	// older, and the previous older entries are forgotten. Hashes take little memory, even if a session has listed a
	// large tree.
	recent, older map[uint64]sighting
}

// A sighting holds what the sessions know about a directory. The times are values of the clock, or 0 for never.
type sighting struct {
	seen    uint64 // when it last existed
	removed uint64 // when a session last removed or renamed it, including its contents
	emptied bool   // since it was seen, a session removed or renamed something in it
}

// maxSeen is the minimum number of directories that are remembered. Some clients delete all files of a tree before its
// directories.
const maxSeen = 8192

// NewDirectories returns Directories without sessions. Only home exists, which is "/" if it is empty. Users must be
// able to log in before they upload the first file.
func NewDirectories(home string) *Directories {
	return &Directories{home: path.Clean("/" + home), seed: maphash.MakeSeed()}
}

// BeginSession counts a session of the user. When the last session calls end, everything except the home is forgotten.
func (d *Directories) BeginSession() (end func()) {
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

// note updates the sighting of a directory.
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

// get returns the sighting with this hash. The mutex must be locked.
func (d *Directories) get(hash uint64) sighting {
	if s, ok := d.recent[hash]; ok {
		return s
	}
	return d.older[hash]
}

// see records that a directory exists.
func (d *Directories) see(dir string) {
	d.note(dir, func(s *sighting, now uint64) { s.seen, s.emptied = now, false })
}

// seePath records that a directory and its parents exist.
func (d *Directories) seePath(dir string) {
	for ; dir != "/"; dir = path.Dir(dir) {
		d.see(dir)
	}
}

// seeParent records that the directory of an existing file exists.
func (d *Directories) seeParent(name string) { d.seePath(path.Dir(name)) }

// noteRemoval records that a session removed or renamed something, so that the parent directories may have vanished.
func (d *Directories) noteRemoval(name string) {
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
		d.note(dir, func(s *sighting, now uint64) { s.seen, s.emptied = now, true })
	}
}

// remove records that a session removed or renamed a directory with its contents.
func (d *Directories) remove(dir string) {
	d.note(dir, func(s *sighting, now uint64) { s.removed = now })
}

// seen reports whether a session has seen a directory with this spelling, and none has removed it since. emptied means
// that a session removed something in it, so that the directory may have vanished.
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
