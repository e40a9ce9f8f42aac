package view

import (
	"path"
	"slices"
	"sync"
)

// A user without permission to read a file or list its directory must not learn whether the file exists. This would be
// revealed by its size and time, by resuming an upload, by setting the time, or by a rename. The users of a drop box
// have such permissions. Clients request the size of a file that they uploaded, and set its time and final name.
// Therefore the session remembers the files that it stored itself. For such a user every directory exists if the user
// has any permissions in it or below, because a directory in S3 is created with its first file.

// unseen holds what a session remembers about files that its user cannot see. The zero value is ready to use. All
// names are canonical.
type unseen struct {
	mu     sync.Mutex
	stored []storedFile // the last maxStored files that the session stored
	// reported sizes of interrupted uploads in bytes, by name
	reported map[string]int64
}

// maxStored limits the remembered files. Clients request information about a file right after they store it.
const maxStored = 100

// A storedFile is a file that the session stored.
type storedFile struct {
	name string
	// object is the name within the mount if it comes from Mount.Key, and path the canonical pathname of the object, by
	// which the reply to STOU calls the file.
	object, path string
}

func (u *unseen) hasStored(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last(name) >= 0
}

// object returns the name from Mount.Key with which the session stored a file, or an empty string.
func (u *unseen) object(name string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if i := u.last(name); i >= 0 {
		return u.stored[i].object
	}
	return ""
}

// last returns the index of the last file with this name, or -1. The mutex must be locked.
func (u *unseen) last(name string) int {
	for i, f := range slices.Backward(u.stored) {
		if f.name == name || f.path == name {
			return i
		}
	}
	return -1
}

// store records a file that the session stored, or moved after storing it.
func (u *unseen) store(t *target) {
	file := storedFile{name: t.canonical}
	if t.sent != "" {
		file.object, file.path = t.inner, Canonical(path.Join(t.mount.Dir, t.inner))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stored = append(u.stored[max(0, len(u.stored)-maxStored+1):], file)
}

// report records the size of an interrupted upload that the session reported to the user.
func (u *unseen) report(name string, size int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.reported) >= maxStored || u.reported == nil {
		u.reported = map[string]int64{}
	}
	u.reported[name] = size
}

// resumesAt reports whether the session told the user that an interrupted upload can be resumed at this offset. This
// reveals nothing about an existing file.
func (u *unseen) resumesAt(name string, offset int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return offset == u.reported[name]
}

// hasReported reports whether the session told the user about an interrupted upload with this name.
func (u *unseen) hasReported(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.reported[name]
	return ok
}
