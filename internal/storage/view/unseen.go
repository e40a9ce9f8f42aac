package view

import (
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
	stored []string // the last maxStored files that the session stored
	// reported sizes of interrupted uploads in bytes, by name
	reported map[string]int64
}

// maxStored limits the remembered files. Clients request information about a file right after they store it.
const maxStored = 100

func (u *unseen) hasStored(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Contains(u.stored, name)
}

// store records a file that the session stored, or moved after storing it.
func (u *unseen) store(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stored = append(u.stored[max(0, len(u.stored)-maxStored+1):], name)
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
