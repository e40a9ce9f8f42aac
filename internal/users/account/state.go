package account

import (
	"sync"
	"sync/atomic"

	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/base/limits"
)

// A state belongs to a tenant or a user and outlives configuration changes: the sessions that count for limits, the
// quota, and the cached password.
type state struct {
	scope    *limits.Scope
	quota    atomic.Int64                     // in bytes, 0 for no limit
	password atomic.Pointer[acceptedPassword] // nil if no password is cached
}

// A stateKey identifies the state of a tenant or a user.
type stateKey struct{ tenant, user string } // user is empty for the state of the tenant

// states holds all states. Tenants and users get their state when a configuration is applied, so preparing a
// configuration, which may be discarded, creates none.
type states struct {
	mu  sync.Mutex
	all map[stateKey]*state
}

// of returns the state of a tenant or a user. It creates a state without limits if it does not exist.
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

// keep drops the states that are neither used by the tenants and users of a configuration nor by a session.
func (s *states) keep(d *tenantTable) {
	held := map[stateKey]*state{}
	for _, t := range d.tenants {
		held[stateKey{tenant: t.Name}] = t.state
		for _, u := range t.allUsers() {
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

// beginSession counts a login and a session in the scopes of a user. It returns errReplaced if the state was dropped
// after the password was checked, because the next login would get a new state that does not include this session.
func (s *states) beginSession(u *User, own limits.Scopes) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[u.stateKey()] != u.state {
		return nil, errReplaced
	}
	return own.AcquireSession()
}

// drop removes the state of a user unless a session uses it. It reports whether it was removed.
func (s *states) drop(u *User) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.state.scope.InUse() {
		return false
	}
	delete(s.all, u.stateKey())
	return true
}

// use sets the limits and the quota, which apply to running sessions too. Current usage stays counted. The caller
// holds [Registry.entering] or the lock of [externalUsers].
func (s *state) use(u limits.Usage, quota bytesize.Size) {
	s.scope.Configure(u)
	s.quota.Store(int64(quota))
}
