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
	// sampleEvery is the time in which strangers of a network write two lines of a kind at most: the first one, and
	// one with the number of the others.
	sampleEvery = time.Minute
	// maxKinds is how many kinds there may be. Networks above that count together.
	maxKinds = 500
)

// strangers writes lines about clients that are not logged in, and about failed commands of users. Both can come at any
// rate, so it writes a few of them and counts the rest in a later line. They never displace a line about a login, a
// transfer or a change.
type strangers struct {
	out   *slog.Logger
	room  func() bool // whether the destinations have room for lines of strangers
	guard *panics.Guard

	mu    sync.Mutex
	kinds map[kind]*counted
}

// A kind is what is counted together.
type kind struct {
	client        netip.Prefix // not valid for those above maxKinds
	event, reason string       // of a line
	code          int          // of the reply to a command, 0 for other events
	tenant, user  string
}

// counted holds how many lines of a kind were written and left out in this minute, and the timer that ends it.
type counted struct {
	some  int
	more  int
	timer *time.Timer
}

// sampled reports whether to write a line of a kind: the first one in a minute. It counts the others.
func (s *strangers) sampled(k kind) bool { return s.first(k, 1) }

// first reports whether to write a line of a kind: the first n in a minute. It counts the others.
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
	s.later(k, c)
	return write
}

// wanted returns whether there is room for a line that is written each time, and else counts it.
func (s *strangers) wanted(k kind) bool {
	if s.room() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.count(k)
	c.more++
	s.later(k, c)
	return false
}

// count is the counter of a kind. The mutex is locked.
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

// anywhere is the same kind of any client and user.
func (k kind) anywhere() kind {
	return kind{event: k.event, reason: k.reason, code: k.code, tenant: k.tenant}
}

// later writes the count of a kind in a minute. The mutex is locked.
func (s *strangers) later(k kind, c *counted) {
	if c.timer != nil {
		return
	}
	if s.kinds[k] != c {
		k = k.anywhere()
	}
	c.timer = time.AfterFunc(sampleEvery, func() { s.tell(k, c) })
}

// tell writes how many lines of a kind were not written, as soon as there is room.
func (s *strangers) tell(k kind, c *counted) {
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
	s.later(k, c)
}

// write writes a count. The mutex is locked.
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

// kind is the kind of a line of this session.
func (s *Session) kind(event, reason string) kind {
	return kind{client: limits.Network(s.client.Address), event: event, reason: reason}
}
