package server

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

const (
	// usersInterval is the minimum time between two reloads of users in the shared state.
	usersInterval = 500 * time.Millisecond
	// firstInterval is the time between two reloads while the users are read for the first time.
	firstInterval = 5 * time.Second
	// usersDelay is the time that a reload waits for more changes.
	usersDelay = 20 * time.Millisecond
	// maxUsersWait limits the time for which a server is not ready because it reads the users.
	maxUsersWait = 10 * time.Second
)

// A mergedConfig is a configuration with the users in the shared state.
type mergedConfig struct {
	cfg     *config.Config
	files   *config.Config // without these users
	ignored []config.UserProblem
}

// mergeUsers adds the users in the shared state to a configuration.
func (s *Server) mergeUsers(files *config.Config) mergedConfig {
	if s.state == nil {
		return mergedConfig{cfg: files, files: files}
	}
	var before *config.Config
	if current := s.active.Load(); current != nil {
		before = current.cfg
	}
	cfg, ignored := s.state.users.Merge(files, before)
	return mergedConfig{cfg, files, ignored}
}

// UsersStore returns the store in which users of a tenant are changed. ok is false if the tenant does not exist.
func (s *Server) UsersStore(tenant string) (store *usersfile.Store, ok bool) {
	return s.tenants.Store(tenant)
}

// IgnoredUsers returns the users in the shared state that are invalid, sorted.
func (s *Server) IgnoredUsers() []config.UserProblem { return s.active.Load().ignored }

// logIgnoredUsers logs the invalid users that were not among the previous ones.
func (s *Server) logIgnoredUsers(before []config.UserProblem) {
	for _, p := range s.active.Load().ignored {
		if !slices.Contains(before, p) {
			s.log.Warn("ignored a user in the shared state", "tenant", p.Tenant, "user", p.User, "reason", p.Reason)
		}
	}
}

// followUsers applies changes of the users in the shared state until ctx ends. The channel is closed when all users are
// known.
func (s *Server) followUsers(ctx context.Context) (known <-chan struct{}) {
	done := make(chan struct{})
	if s.state == nil {
		close(done)
		return done
	}
	panics.Go(func() {
		if !s.awaitComplete(ctx) {
			return
		}
		s.reloadUsers()
		close(done)
		for {
			select {
			case <-s.state.users.Changed():
			case <-ctx.Done():
				return
			}
			if !wait(ctx, usersDelay) {
				return
			}
			s.reloadUsers()
			if !wait(ctx, usersInterval-usersDelay) {
				return
			}
		}
	})
	return done
}

// awaitComplete waits until the users have been read once. Until then, it rarely applies those that are known, because
// that takes longer than reading some more. It returns false if ctx ends first.
func (s *Server) awaitComplete(ctx context.Context) bool {
	for {
		select {
		case <-s.state.store.Complete():
			return true
		case <-time.After(firstInterval):
			s.reloadUsers()
		case <-ctx.Done():
			return false
		}
	}
}

// wait returns false if ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// awaitUsers waits until the users are known, or for maxUsersWait.
func awaitUsers(ctx context.Context, known <-chan struct{}) {
	select {
	case <-known:
	case <-time.After(maxUsersWait):
	case <-ctx.Done():
	}
}

// reloadUsers applies the users in the shared state to the configuration in use. Tenants without a change are kept, and
// no file is read.
func (s *Server) reloadUsers() {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if s.stopped {
		return
	}
	begun, before := time.Now(), s.active.Load()
	next, err := panics.Result(func() (*prepared, error) {
		m := s.mergeUsers(before.files)
		if maps.Equal(m.cfg.Tenants, before.cfg.Tenants) && slices.Equal(m.ignored, before.ignored) {
			return nil, nil
		}
		return s.prepareMerged(m)
	})
	switch {
	case err != nil:
		s.log.Error("users in the shared state not applied; keeping the previous ones", "err", err)
		return
	case next == nil:
		return
	}
	next.at = before.at // the configuration is the same
	s.apply(next)
	s.logIgnoredUsers(before.ignored)
	changes := next.cfg.UserChanges(before.cfg)
	if changes.IsEmpty() {
		return
	}
	s.auditReload(ReloadState, changes, nil)
	s.log.Info("users reloaded", "added", len(changes.Added), "changed", len(changes.Changed), "removed", len(changes.Removed),
		"users", next.cfg.UsersCount(), "duration_ms", time.Since(begun).Milliseconds())
}
