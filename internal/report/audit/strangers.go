package audit

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// sampleEvery is the time in which at most two lines are written for strangers of one network and kind: the first
	// line, and a line with the number of the others.
	sampleEvery = time.Minute
	// maxKinds limits the kinds that are counted separately. Further networks are counted together.
	maxKinds = 500
)

// strangers writes lines about clients that are not logged in, and about failed commands of users. Both may be very
// frequent, so it writes a few lines and counts the rest in a later line. Therefore they never displace a line about a
// login, a transfer or a change.
type strangers struct {
	out   *slog.Logger
	room  func() bool // reports whether the destinations have room for these lines
	guard *panics.Guard

	mu    sync.Mutex
	kinds map[kind]*counted
}

// A kind identifies lines that are counted together.
type kind struct {
	client        netip.Prefix // invalid for networks above maxKinds
	event, reason string       // event and reason of a line
	code          int          // reply code of a command, 0 for other events
	tenant, user  string
}

// counted holds the numbers of written and omitted lines of a kind in the current minute, and the timer that ends the
// minute.
type counted struct {
	some  int
	more  int
	timer *time.Timer
}

// sampled reports whether to write a line of a kind, which is true for the first one in a minute. Otherwise it counts
// the line.
func (s *strangers) sampled(k kind) bool { return s.first(k, 1) }

// first reports whether to write a line of a kind, which is true for the first n in a minute. Otherwise it counts the
// line.
func (s *strangers) first(k kind, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.count(k)
	if c.timer == nil {
		c.some = 0
	}
	write := c.some < n && s.room()
	if write {
		c.some++
	} else {
		c.more++
	}
	s.schedule(k, c)
	return write
}

// wanted reports whether there is room for a line that is never sampled. Otherwise it counts the line.
func (s *strangers) wanted(k kind) bool {
	if s.room() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.count(k)
	c.more++
	s.schedule(k, c)
	return false
}

// count returns the counter of a kind. The mutex must be locked.
func (s *strangers) count(k kind) *counted {
	c := s.kinds[k]
	if c == nil && len(s.kinds) >= maxKinds {
		k = k.anywhere()
		c = s.kinds[k]
	}
	if c == nil {
		c = &counted{}
		s.kinds[k] = c
	}
	return c
}

// anywhere returns the kind without the client and the user.
func (k kind) anywhere() kind {
	return kind{event: k.event, reason: k.reason, code: k.code, tenant: k.tenant}
}

// schedule writes the count of a kind in a minute. The mutex must be locked.
func (s *strangers) schedule(k kind, c *counted) {
	if c.timer != nil {
		return
	}
	if s.kinds[k] != c {
		k = k.anywhere()
	}
	c.timer = time.AfterFunc(sampleEvery, func() { s.writeLater(k, c) })
}

// writeLater writes the number of omitted lines of a kind, as soon as there is room.
func (s *strangers) writeLater(k kind, c *counted) {
	defer s.guard.Recover("audit log")
	s.mu.Lock()
	defer s.mu.Unlock()
	c.timer = nil
	switch {
	case c.more == 0:
		delete(s.kinds, k)
		return
	case s.room():
		s.write(k, c)
	}
	s.schedule(k, c)
}

// write writes a count. The mutex must be locked.
func (s *strangers) write(k kind, c *counted) {
	about := []any{"outcome", outcomeFailed}
	if k.client.IsValid() {
		about = append(about, "client", k.client.String())
	}
	switch {
	case k.code != 0:
		about = append(about, "code", k.code)
	case k.event == eventRefused:
		about = append(about, "limit", k.reason)
	default:
		about = append(about, "reason", k.reason)
	}
	if k.tenant != "" {
		about = append(about, "tenant", k.tenant)
	}
	if k.user != "" {
		about = append(about, "user", k.user)
	}
	s.out.Info(k.event, append(about, "more", c.more)...)
	c.more = 0
}

// flush writes all counts.
func (s *strangers) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, c := range s.kinds {
		if c.more > 0 {
			s.write(k, c)
		}
	}
}

// kind returns the kind of a line of this session.
func (s *Session) kind(event, reason string) kind {
	return kind{client: limits.Network(s.client.Address), event: event, reason: reason}
}
