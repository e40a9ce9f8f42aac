package account

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
)

// A state is what a tenant or a user keeps when the configuration changes. That is the sessions that count for limits,
// what is counted for the quota, the last login, and the password that was right recently.
type state struct {
	scope     *limits.Scope
	quota     atomic.Pointer[Quota]         // nil without
	lastLogin atomic.Pointer[time.Time]     // nil before the first in this process, which keeps no others
	password  atomic.Pointer[rightPassword] // nil before one was right
}

// A stateKey is whose state it is.
type stateKey struct{ tenant, user string } // user is empty for the tenant's own

// states is the table of all states. Each configuration looks up those of its tenants and users there.
type states struct {
	mu  sync.Mutex
	all map[stateKey]*state
}

// of is the state of a tenant, or of a user of it. It is a new one, without limits, for who has none.
func (s *states) of(key stateKey) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.all[key]
	if found == nil {
		found = &state{scope: limits.NewUser(key.tenant, 0, limits.Usage{})}
		if key.user == "" {
			found.scope = limits.NewTenant(key.tenant, 0, limits.Usage{})
		}
		s.all[key] = found
	}
	return found
}

// keep drops each state that neither a tenant or user of a configuration nor a session holds, such as those made for a
// configuration that was refused.
func (s *states) keep(d *directory) {
	held := map[stateKey]*state{}
	for _, t := range d.tenants {
		held[stateKey{tenant: t.Name}] = t.state
		for _, u := range t.all() {
			held[stateKey{t.Name, u.Name}] = u.state
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, st := range s.all {
		if held[key] == nil && st.scope.InUse() {
			held[key] = st
		}
	}
	s.all = held
}

// drop drops the state of a user that no configuration and no session holds.
func (s *states) drop(key stateKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, key)
}

// use lets limits and a quota count from now on, and what is in use stays counted. It returns the quota if the bytes
// in its place have to be counted first, and else nil.
func (s *state) use(of *limits.Scope, q *Quota) (uncounted *Quota) {
	s.scope.Adopt(of)
	old := s.quota.Swap(q)
	switch {
	case q == nil:
		return nil
	case old == nil || old.Quota != q.Quota:
		return q
	case old.bucket != q.bucket: // the same place with other credentials, for example
		q.SetBucket(q.bucket.Client, q.bucket.Name)
	}
	q.SetLimit(q.limit)
	return nil
}

// loggedIn notes the time of a login and returns that of the one before, zero if this process has seen none.
func (s *state) loggedIn(now time.Time) time.Time {
	if before := s.lastLogin.Swap(&now); before != nil {
		return *before
	}
	return time.Time{}
}
