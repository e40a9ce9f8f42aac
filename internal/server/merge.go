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
	// mergeInterval is the minimum time between two reloads of users in the shared state and custom resources.
	mergeInterval = 500 * time.Millisecond
	// firstInterval is the time between two reloads while the users are read for the first time.
	firstInterval = 5 * time.Second
	// mergeDelay is the time that a reload waits for more changes.
	mergeDelay = 20 * time.Millisecond
	// maxUsersWait limits the time for which a server is not ready because it reads the users.
	maxUsersWait = 10 * time.Second
)

// A mergedConfig is a configuration with the custom resources and the users in the shared state.
type mergedConfig struct {
	cfg       *config.Config
	files     *config.Config // without these
	ignored   []config.UserProblem
	resources *config.ResourceMerge // nil without custom resources, or if they are not known yet
}

// merge adds the custom resources and the users in the shared state to a configuration.
func (s *Server) merge(files *config.Config) mergedConfig {
	m := mergedConfig{cfg: files, files: files}
	before := s.active.Load()
	if before == nil {
		before = &active{}
	}
	if s.opts.Resources != nil {
		m.cfg, m.resources = s.mergeResources(files, before.resources)
	}
	if s.state != nil {
		m.cfg, m.ignored = s.state.users.Merge(m.cfg, before.cfg)
	}
	return m
}

// equal reports whether two configurations with the same files have the same tenants, users and problems.
func (m mergedConfig) equal(other mergedConfig) bool {
	return maps.Equal(m.cfg.Tenants, other.cfg.Tenants) && m.cfg.TenantsUnknown == other.cfg.TenantsUnknown &&
		slices.Equal(m.ignored, other.ignored)
}

// UsersStore returns the store in which users of a tenant are changed. ok is false if the tenant does not exist.
func (s *Server) UsersStore(tenant string) (store *usersfile.Store, ok bool) {
	return s.tenants.Store(tenant)
}

// IgnoredUsers returns the users in the shared state that are invalid, sorted.
func (s *Server) IgnoredUsers() []config.UserProblem { return s.active.Load().ignored }

// logIgnored logs the invalid users and custom resources that were not among the previous ones.
func (s *Server) logIgnored(before mergedConfig) {
	current := s.active.Load()
	for _, p := range current.ignored {
		if !slices.Contains(before.ignored, p) {
			s.log.Warn("ignored a user in the shared state", "tenant", p.Tenant, "user", p.User, "reason", p.Reason)
		}
	}
	s.logResources(before.resources, current.resources)
}

// A mergeSource is a source of tenants and users that [Server.follow] follows.
type mergeSource struct {
	complete <-chan struct{} // closed when everything was read once; nil afterwards
	changed  <-chan struct{} // nil before
	changes  <-chan struct{} // value of changed from then on
	applied  chan struct{}   // closed when everything that was read once is in use
}

// newMergeSource returns a source. If it is not configured, everything is in use.
func newMergeSource(configured bool) *mergeSource {
	m := &mergeSource{applied: make(chan struct{})}
	if !configured {
		close(m.applied)
	}
	return m
}

// begin makes the source wait for changes, after everything was read once.
func (m *mergeSource) begin() { m.complete, m.changed = nil, m.changes }

// markApplied notes that the source was applied.
func (m *mergeSource) markApplied() {
	select {
	case <-m.applied:
	default:
		if m.changed != nil {
			close(m.applied)
		}
	}
}

// follow applies changes of the users in the shared state and of the custom resources until ctx ends. The channels are
// closed when all of them are known and in use.
func (s *Server) follow(ctx context.Context) (usersKnown, resourcesKnown <-chan struct{}) {
	users, resources := newMergeSource(s.state != nil), newMergeSource(s.opts.Resources != nil)
	if s.state != nil {
		users.complete, users.changes = s.state.store.Complete(), s.state.users.Changed()
	}
	if r := s.opts.Resources; r != nil {
		resources.complete, resources.changes = r.Known(), r.Changed()
	}
	if s.state != nil || s.opts.Resources != nil {
		panics.Go(func() {
			for s.awaitChange(ctx, users, resources) {
				s.reloadMerged()
				users.markApplied()
				resources.markApplied()
				if !wait(ctx, mergeInterval-mergeDelay) {
					return
				}
			}
		})
	}
	return users.applied, resources.applied
}

// awaitChange waits for a change, and then for mergeDelay. Until all users have been read once, it rarely returns,
// because applying those that are known takes longer than reading some more. It returns false if ctx ends first.
func (s *Server) awaitChange(ctx context.Context, users, resources *mergeSource) bool {
	var first <-chan time.Time
	if users.complete != nil {
		first = time.After(firstInterval)
	}
	select {
	case <-users.complete:
		users.begin()
	case <-resources.complete:
		resources.begin()
	case <-users.changed:
	case <-resources.changed:
	case <-first:
	case <-ctx.Done():
		return false
	}
	return wait(ctx, mergeDelay)
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

// awaitKnown waits until the custom resources are known, and until the users are known or for maxUsersWait. It returns
// false if ctx ends first.
func awaitKnown(ctx context.Context, users, resources <-chan struct{}) bool {
	select {
	case <-users:
	case <-time.After(maxUsersWait):
	case <-ctx.Done():
		return false
	}
	select {
	case <-resources:
		return true
	case <-ctx.Done():
		return false
	}
}

// reloadMerged applies the users in the shared state and the custom resources to the configuration in use. Tenants
// without a change are kept, and no file of the configuration is read.
func (s *Server) reloadMerged() {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if s.stopped {
		return
	}
	begun, before := time.Now(), s.active.Load()
	var m mergedConfig
	next, err := panics.Result(func() (*prepared, error) {
		if m = s.merge(before.files); m.equal(before.mergedConfig) {
			return nil, nil
		}
		return s.prepareMerged(m, s.certificates.PrepareTenants)
	})
	switch {
	case err != nil:
		s.log.Error("changed users and custom resources not applied; keeping the previous ones", "err", err)
		return
	case next == nil:
		s.useOutcome(before, m.resources)
		return
	}
	next.at = before.at // the configuration is the same
	s.apply(next)
	s.logIgnored(before.mergedConfig)
	changes, cause := changesOf(before.cfg, next.cfg), ReloadState
	if next.resources != before.resources {
		cause = ReloadResources
	}
	if changes.isEmpty() {
		return
	}
	s.auditReload(cause, changes, nil)
	s.log.Info("tenants and users reloaded", "cause", cause, "tenants_added", len(changes.tenants.Added),
		"tenants_changed", len(changes.tenants.Changed), "tenants_removed", len(changes.tenants.Removed),
		"added", len(changes.users.Added), "changed", len(changes.users.Changed), "removed", len(changes.users.Removed),
		"tenants", len(next.cfg.Tenants), "users", next.cfg.UsersCount(),
		"duration_ms", time.Since(begun).Milliseconds())
}
