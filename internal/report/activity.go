package report

import (
	"context"
	"sync"
	"time"
)

// An Activity is what is known of a session. Its methods may be called by any goroutine.
type Activity struct {
	Silent
	since time.Time

	mu       sync.Mutex
	client   *Client
	active   time.Time
	command  string    // the name of the one that is running, empty for none
	transfer *transfer // nil for none
}

var _ Observer = (*Activity)(nil)

// A transfer is the one that is running.
type transfer struct {
	*Transfer
	since time.Time

	// What the last call of Show that measured the rate has seen.
	seen time.Time
	had  int64
	rate int64
}

// NewActivity is that of a session that begins.
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

// CommandBegan shows the command, unless it is a STAT during a transfer.
func (s *Activity) CommandBegan(ctx context.Context, c Command) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active = time.Now(); s.transfer == nil {
		s.command = c.Name
	}
	return ctx
}

// Transferring shows the transfer until its command has ended.
func (s *Activity) Transferring(t *Transfer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.transfer = &transfer{Transfer: t, since: now, seen: now}
}

// CommandEnded shows that the session is idle, unless that was a STAT during a transfer.
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

// A ShownSession is a session at a moment.
type ShownSession struct {
	ID         string         `json:"id"`
	Remote     string         `json:"remote"` // the client's address and port
	Tenant     string         `json:"tenant"` // empty before the login, like User
	User       string         `json:"user"`
	Since      time.Time      `json:"since"`
	LastActive time.Time      `json:"last_active"` // when a command began or ended last
	Language   string         `json:"language"`    // BCP 47
	TLS        bool           `json:"tls"`         // on the control connection
	Command    string         `json:"command"`     // the verb of the command that is running, empty for none
	Transfer   *ShownTransfer `json:"transfer,omitempty"`
}

// A ShownTransfer is one that is running.
type ShownTransfer struct {
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
func (s *Activity) Show() ShownSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := ShownSession{
		ID: s.client.ID, Remote: s.client.Remote, Tenant: s.client.Tenant, User: s.client.User, Since: s.since.UTC(),
		LastActive: s.active.UTC(),
		Language:   s.client.Language.String(), TLS: s.client.TLS, Command: s.command,
	}
	if t := s.transfer; t != nil {
		shown.Transfer = &ShownTransfer{
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
