package account

import "sync"

// tenantSessions counts the sessions of each tenant, including tenants that a configuration change has replaced.
type tenantSessions struct {
	mu    sync.Mutex
	count map[*Tenant]int
}

// begin counts a session of a tenant until end is called.
func (s *tenantSessions) begin(t *Tenant) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[t]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.count[t]--; s.count[t] == 0 {
			delete(s.count, t)
		}
	}
}

// SessionsWithOldKeys returns the number of sessions of each tenant that still use an S3 access key which was
// replaced. Sessions of removed tenants are counted for the tenant "".
func (r *Registry) SessionsWithOldKeys() map[string]int {
	tenants := r.current.Load().tenants
	old := map[string]int{}
	for name := range tenants {
		old[name] = 0
	}
	r.sessions.mu.Lock()
	defer r.sessions.mu.Unlock()
	for t, n := range r.sessions.count {
		switch next := tenants[t.Name]; {
		case next == nil && t.bucket.UsesOldKey(nil):
			old[""] += n
		case next != nil && t.bucket.UsesOldKey(next.bucket):
			old[t.Name] += n
		}
	}
	return old
}
