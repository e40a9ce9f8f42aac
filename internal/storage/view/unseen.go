package view

import (
	"slices"
	"sync"
)

// A user who may neither read a file nor list its directory must not learn whether the file exists. Size and time
// would tell it, and so would resuming an upload, setting the time, or a rename. The user of a drop box is such a
// user. Clients ask for the size of a file that they have uploaded, and set its time and its final name. So the
// session remembers the files that it has stored itself. For such a user each directory exists, if the user may do
// anything in it or below. A directory of S3 begins with its first file.

// unseen is what a session remembers of files that its user cannot see. The zero value is ready. All names are
// canonical.
type unseen struct {
	mu     sync.Mutex
	stored []string // files that the session has stored, the last maxStored of them
	// by name, the size in bytes that the session has reported of an interrupted upload
	reported map[string]int64
}

// maxStored is how many unseen files a session remembers. Clients ask about a file right after they have stored it.
const maxStored = 100

func (u *unseen) hasStored(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Contains(u.stored, name)
}

// store remembers a file that the session has stored, or has moved after it stored it.
func (u *unseen) store(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stored = append(u.stored[max(0, len(u.stored)-maxStored+1):], name)
}

// report remembers how many bytes of an interrupted upload the session has reported.
func (u *unseen) report(name string, size int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.reported) >= maxStored || u.reported == nil {
		u.reported = map[string]int64{}
	}
	u.reported[name] = size
}

// resumesAt reports whether the session has told the user that an own interrupted upload resumes at this offset. It
// tells nothing about a file of that name.
func (u *unseen) resumesAt(name string, offset int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return offset == u.reported[name]
}

// hasReported reports whether the session has told the user of an own interrupted upload of this name.
func (u *unseen) hasReported(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.reported[name]
	return ok
}
