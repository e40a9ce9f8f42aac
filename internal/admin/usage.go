package admin

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
)

// Usage has the users that have a session or have logged in, by tenant and name.
type Usage struct {
	Users map[string]map[string]UserUsage `json:"users"`
	// Missing has the replicas that did not respond, with the reason. Their sessions are not counted.
	Missing map[int]error `json:"-"`
}

// UserUsage is the number of sessions of a user, and its last login.
type UserUsage struct {
	Sessions  int       `json:"s,omitempty"`
	LastLogin time.Time `json:"l,omitzero"` // in seconds, UTC; zero if unknown
}

// add adds the usage of one user.
func (u *Usage) add(tenant, user string, more UserUsage) {
	users := u.Users[tenant]
	if users == nil {
		users = map[string]UserUsage{}
		u.Users[tenant] = users
	}
	sum := users[user]
	sum.Sessions += more.Sessions
	if more.LastLogin.After(sum.LastLogin) {
		sum.LastLogin = more.LastLogin
	}
	users[user] = sum
}

// ownUsage returns the usage of this replica.
func (h *Handler) ownUsage() *Usage {
	u := &Usage{Users: map[string]map[string]UserUsage{}}
	for _, l := range h.Source.LastLogins() {
		u.add(l.Tenant, l.User, UserUsage{LastLogin: l.Time.UTC().Truncate(time.Second)})
	}
	for _, s := range h.Source.Sessions() {
		if s.User != "" {
			u.add(s.Tenant, s.User, UserUsage{Sessions: 1})
		}
	}
	return u
}

// Usage returns the usage of all replicas. It waits a few seconds for replicas that do not respond.
func (h *Handler) Usage(ctx context.Context) *Usage {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	sum := h.ownUsage()
	sum.Missing = map[int]error{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, n := range h.replicas() {
		if n == h.self() {
			continue
		}
		asking.Go(func() {
			var other Usage
			err := panics.Catch(func() error { return h.Peers.Do(ctx, n, http.MethodGet, "/usage", nil, &other) })
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				sum.Missing[n] = err
				return
			}
			for tenant, users := range other.Users {
				for user, more := range users {
					sum.add(tenant, user, more)
				}
			}
		})
	}
	asking.Wait()
	return sum
}
