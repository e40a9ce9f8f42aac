package report

import (
	"context"
	"sync"
	"time"
)

// An Activity is the current state of a session, as administrators see it. Its methods are safe for concurrent use.
type Activity struct {
	Silent
	since time.Time

	mu       sync.Mutex
	client   *Client
	active   time.Time
	command  string           // running command, empty when idle
	transfer *runningTransfer // nil if no transfer is running
}

var _ Observer = (*Activity)(nil)

// A runningTransfer is the transfer in progress.
type runningTransfer struct {
	*Transfer
	since time.Time

	// State of the last rate measurement.
	seen time.Time
	had  int64
	rate int64
}

// NewActivity returns the activity of a new session.
func NewActivity(client *Client) *Activity {
	now := time.Now()
	return &Activity{client: client, since: now, active: now}
}

// Identified implements [Observer].
func (s *Activity) Identified(client *Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = client
}

// CommandBegan stores the command, unless it is a STAT during a transfer.
func (s *Activity) CommandBegan(ctx context.Context, c Command) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active = time.Now(); s.transfer == nil {
		s.command = c.Name
	}
	return ctx
}

// Transferring stores the transfer until its command ends.
func (s *Activity) Transferring(t *Transfer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.transfer = &runningTransfer{Transfer: t, since: now, seen: now}
}

// CommandEnded marks the session as idle, unless the command was a STAT during a transfer.
func (s *Activity) CommandEnded(_ context.Context, o *Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = time.Now()
	if o.Transfer != nil {
		s.transfer = nil
	}
	if s.transfer == nil {
		s.command = ""
	}
}

// A SessionInfo is a snapshot of a session.
type SessionInfo struct {
	ID         string        `json:"id"`
	Remote     string        `json:"remote"` // address and port of the client
	Tenant     string        `json:"tenant"` // empty before the login, like User
	User       string        `json:"user"`
	Since      time.Time     `json:"since"`
	LastActive time.Time     `json:"last_active"` // last start or end of a command
	Language   string        `json:"language"`    // BCP 47
	TLS        bool          `json:"tls"`         // on the control connection
	Command    string        `json:"command"`     // verb of the running command, empty when idle
	Transfer   *TransferInfo `json:"transfer,omitempty"`
}

// A TransferInfo is a snapshot of a running transfer.
type TransferInfo struct {
	Session   string `json:"session"`
	Tenant    string `json:"tenant"`
	User      string `json:"user"`
	Remote    string `json:"remote"`
	Direction string `json:"direction"` // upload, download, listing
	Path      string `json:"path"`      // as the user sees it
	Bytes     int64  `json:"bytes"`     // transferred on the data connection so far
	Size      *int64 `json:"size,omitempty"`
	// BytesPerSecond is the rate since the previous snapshot, if that is at least a second old, or since the start of
	// the transfer.
	BytesPerSecond int64     `json:"bytes_per_second"`
	Since          time.Time `json:"since"`
}

// Info returns a snapshot of the session.
func (s *Activity) Info() SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := SessionInfo{
		ID: s.client.ID, Remote: s.client.Remote, Tenant: s.client.Tenant, User: s.client.User, Since: s.since.UTC(),
		LastActive: s.active.UTC(),
		Language:   s.client.Language.String(), TLS: s.client.TLS, Command: s.command,
	}
	if t := s.transfer; t != nil {
		shown.Transfer = &TransferInfo{
			Session: s.client.ID, Tenant: s.client.Tenant, User: s.client.User, Remote: s.client.Remote,
			Direction: t.Direction(), Path: t.Path,
			Bytes: t.Bytes(), BytesPerSecond: t.bytesPerSecond(time.Now()), Since: t.since.UTC(),
		}
		if size, known := t.Size(); known {
			shown.Transfer.Size = &size
		}
	}
	return shown
}

// measureAfter is the minimum time over which a rate is measured.
const measureAfter = time.Second

func (t *runningTransfer) bytesPerSecond(now time.Time) int64 {
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
