// Package activity tells administrators what each session does at the moment.
//
// A session changes its [Session] when a command begins and ends, and when a transfer does. [Session.Show] returns
// what there is. The bytes of a transfer are read when an administrator asks, so that moving them costs nothing.
package activity

import (
	"sync"
	"time"

	"golang.org/x/text/language"
)

// A State is what changes with the commands of a session.
type State struct {
	Tenant, User string // empty before the login
	Language     language.Tag
	TLS          bool   // on the control connection
	Command      string // the verb of the command that is running, empty for none
}

// A Session is what is known of a session. Its methods may be called by any goroutine.
type Session struct {
	id, remote string
	since      time.Time

	mu       sync.Mutex
	state    State
	active   time.Time
	transfer *transfer // nil for none
}

// Progress is how far a running transfer is. Any goroutine may ask it.
type Progress interface {
	Direction() string               // upload, download, listing
	Bytes() int64                    // on the data connection so far
	Size() (bytes int64, known bool) // of the whole
}

// A transfer is the one that is running.
type transfer struct {
	Progress
	path  string
	since time.Time

	// What the last call of Show that measured the rate has seen.
	seen time.Time
	had  int64
	rate int64
}

// New is the activity of a session that begins. The ID is that of the log.
func New(id, remote string) *Session {
	now := time.Now()
	return &Session{id: id, remote: remote, since: now, active: now}
}

// Set says that a command begins or ends.
func (s *Session) Set(state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.active = state, time.Now()
}

// Begin says that a transfer of a file or directory begins, and End that it has ended.
func (s *Session) Begin(t Progress, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.transfer = &transfer{Progress: t, path: path, since: now, seen: now}
}

// End says that the transfer has ended.
func (s *Session) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transfer = nil
}

// A Shown is a session at a moment.
type Shown struct {
	ID         string    `json:"id"`
	Remote     string    `json:"remote"` // the client's address and port
	Tenant     string    `json:"tenant"` // empty before the login, like User
	User       string    `json:"user"`
	Since      time.Time `json:"since"`
	LastActive time.Time `json:"last_active"` // when a command began or ended last
	Language   string    `json:"language"`    // BCP 47
	TLS        bool      `json:"tls"`         // on the control connection
	Command    string    `json:"command"`     // the verb of the command that is running, empty for none
	Transfer   *Transfer `json:"transfer,omitempty"`
}

// A Transfer is one that is running.
type Transfer struct {
	Session   string `json:"session"`
	Tenant    string `json:"tenant"`
	User      string `json:"user"`
	Remote    string `json:"remote"`
	Direction string `json:"direction"` // upload, download, listing
	Path      string `json:"path"`      // as the user sees it
	Bytes     int64  `json:"bytes"`     // on the data connection so far
	Size      *int64 `json:"size,omitempty"`
	// BytesPerSecond is the rate since the last time that somebody asked, a second ago or longer, or since the begin
	// of the transfer.
	BytesPerSecond int64     `json:"bytes_per_second"`
	Since          time.Time `json:"since"`
}

// Show returns the session at this moment.
func (s *Session) Show() Shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := Shown{
		ID: s.id, Remote: s.remote, Tenant: s.state.Tenant, User: s.state.User, Since: s.since.UTC(),
		LastActive: s.active.UTC(),
		Language:   s.state.Language.String(), TLS: s.state.TLS, Command: s.state.Command,
	}
	if t := s.transfer; t != nil {
		shown.Transfer = &Transfer{
			Session: s.id, Tenant: s.state.Tenant, User: s.state.User, Remote: s.remote, Direction: t.Direction(),
			Path:  t.path,
			Bytes: t.Bytes(), BytesPerSecond: t.bytesPerSecond(time.Now()), Since: t.since.UTC(),
		}
		if size, known := t.Size(); known {
			shown.Transfer.Size = &size
		}
	}
	return shown
}

// measureAfter is the shortest time over which a rate is measured.
const measureAfter = time.Second

// bytesPerSecond measures the rate.
func (t *transfer) bytesPerSecond(now time.Time) int64 {
	rate := func() int64 {
		return int64(float64(t.Bytes()-t.had) / max(now.Sub(t.seen), time.Millisecond).Seconds())
	}
	switch {
	case now.Sub(t.seen) >= measureAfter:
		t.rate = rate()
		t.seen, t.had = now, t.Bytes()
	case t.had == 0:
		return rate()
	}
	return t.rate
}
