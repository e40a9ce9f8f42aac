package account

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/base/limits"
)

// A state is what a tenant or a user keeps when the configuration changes: the sessions that count for limits, the
// quota, the last login, and the password that was right recently.
type state struct {
	scope     *limits.Scope
	quota     atomic.Int64                  // in bytes, 0 for no limit
	lastLogin atomic.Pointer[time.Time]     // nil before the first in this process, which keeps no others
	password  atomic.Pointer[rightPassword] // nil before one was right
}

// A stateKey is whose state it is.
type stateKey struct{ tenant, user string } // user is empty for the tenant's own

// states is the table of all states. Tenants and users look up theirs when they are used, so a configuration that is
// prepared, and maybe refused, has none.
type states struct {
	mu  sync.Mutex
	all map[stateKey]*state
}

// of is the state of a tenant, or of a user of it. Where there is none yet, it is a new one without limits.
func (s *states) of(key stateKey) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.all[key]
	if found == nil {
		found = &state{scope: limits.NewUser(key.tenant, limits.Usage{})}
		if key.user == "" {
			found.scope = limits.NewTenant(key.tenant, limits.Usage{})
		}
		s.all[key] = found
	}
	return found
}

// keep drops each state that neither a tenant or user of a configuration nor a session holds.
func (s *states) keep(d *directory) {
	held := map[stateKey]*state{}
	for _, t := range d.tenants {
		held[stateKey{tenant: t.Name}] = t.state
		for _, u := range t.all() {
			held[u.stateKey()] = u.state
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

// enter counts a login and a session in the scopes of a user. It returns errReplaced if the state of the user was
// dropped since the password was checked: that of the next login would not know of the session.
func (s *states) enter(u *User, own limits.Scopes) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[u.stateKey()] != u.state {
		return nil, errReplaced
	}
	return own.EnterSession()
}

// drop drops the state of a user, and reports whether no session holds it. Otherwise it stays.
func (s *states) drop(u *User) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.state.scope.InUse() {
		return false
	}
	delete(s.all, u.stateKey())
	return true
}

// use applies limits and a quota from now on, also to running sessions. What is in use stays counted.
// [Registry.entering] or the lock of [external] is held.
func (s *state) use(u limits.Usage, quota bytesize.Size) {
	s.scope.Configure(u)
	s.quota.Store(int64(quota))
}

// loggedIn notes the time of a login and returns that of the one before, zero if this process has seen none.
func (s *state) loggedIn(now time.Time) time.Time {
	if before := s.lastLogin.Swap(&now); before != nil {
		return *before
	}
	return time.Time{}
}
