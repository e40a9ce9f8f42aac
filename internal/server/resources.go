package server

import (
	"context"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/users/account"
)

// A ResourceSource reads tenants and users that are custom resources of Kubernetes. The server adds them to the tenants
// of its files.
type ResourceSource interface {
	// Configure sets the namespaces to follow. The server calls it before Run, and after each reload of its files.
	Configure(k *config.Kubernetes)
	// Run follows the resources until ctx ends. It writes their status with what it learns from s.
	Run(ctx context.Context, s *Server)
	// Known returns a channel that is closed when all resources were read, or a copy of them was loaded.
	Known() <-chan struct{}
	// Changed returns a channel that receives a value after a change.
	Changed() <-chan struct{}
	// Current returns the resources. The result is immutable.
	Current() *config.Resources
	// Problem returns why changes of resources do not arrive, and since when. The error is nil if they arrive.
	Problem() (since time.Time, err error)
	// Applied is called when the outcome of a merge is in use. It must not block.
	Applied(m *config.ResourceMerge)
	// Leading reports whether this replica writes the status of the resources.
	Leading() bool
}

// runResources follows the custom resources until ctx ends. end cancels ctx with stop and waits until the source has
// saved what it knows, but not longer than closeTimeout.
func (s *Server) runResources(ctx context.Context, stop func()) (end func()) {
	ended := make(chan struct{})
	panics.Go(func() {
		defer close(ended)
		s.opts.Resources.Run(ctx, s)
	})
	return func() {
		stop()
		select {
		case <-ended:
		case <-time.After(closeTimeout):
			s.log.Warn("custom resources are still being saved; not waiting any longer")
		}
	}
}

// mergeResources adds the custom resources to a configuration. before is the previous result, or nil.
func (s *Server) mergeResources(
	files *config.Config, before *config.ResourceMerge,
) (*config.Config, *config.ResourceMerge) {
	select {
	case <-s.opts.Resources.Known():
		r := *s.opts.Resources.Current()
		r.Check = s.checkResource
		return files.MergeResources(&r, before)
	default:
		unknown := *files
		unknown.TenantsUnknown = true
		return &unknown, nil
	}
}

// checkResource reports why the tenant of a valid configuration could not be used, for example because its certificate
// does not belong to its key. It changes nothing in use.
func (s *Server) checkResource(cfg *config.Config) error {
	if _, err := s.certificates.PrepareTenants(cfg); err != nil {
		return err
	}
	bundle, err := cfg.Bundle()
	if err != nil {
		return err
	}
	buckets, err := s.factory.Buckets(cfg)
	if err != nil {
		return err
	}
	queues, err := s.newEventQueues(cfg, buckets)
	if err != nil {
		return err
	}
	return s.tenants.Check(cfg, bundle, buckets, sinksOf(queues), s.filesOf(cfg))
}

// useOutcome stores the outcome of a merge that changed no tenant.
func (s *Server) useOutcome(current *active, outcome *config.ResourceMerge) {
	if outcome == nil || outcome == current.resources {
		return
	}
	next := *current
	next.resources = outcome
	s.active.Store(&next)
	s.logResources(current.resources, outcome)
	s.opts.Resources.Applied(outcome)
}

// logResources logs the custom resources that are not in use in their current version, except those that were logged
// before.
func (s *Server) logResources(before, next *config.ResourceMerge) {
	if next == nil || next == before {
		return
	}
	known := map[*config.ResourceOutcome]bool{}
	if before != nil {
		for _, o := range before.Outcomes {
			known[o] = true
		}
	}
	more := 0
	for _, o := range next.Outcomes {
		if o.Reason == config.ResourceAccepted || known[o] {
			continue
		}
		if more++; more > maxProblems {
			continue
		}
		s.log.Warn("custom resource refused", "kind", o.Resource.Kind, "namespace", o.Resource.Namespace,
			"name", o.Resource.Name, "reason", o.Reason, "problem", o.Message, "previous_version_in_use", o.Used != nil)
	}
	if more > maxProblems {
		s.log.Warn("more custom resources refused; see the status of each", "more", more-maxProblems)
	}
}

// removedResources returns a function that reports why the sessions of a user end: because the resource of the user or
// of the tenant is not in use anymore. Users are written USER@TENANT.
func removedResources(before, next *config.ResourceMerge) func(user string) *limits.Error {
	if before == nil || before == next {
		return func(string) *limits.Error { return nil }
	}
	removed := inUse(before)
	for name := range inUse(next) {
		delete(removed, name)
	}
	return func(user string) *limits.Error {
		at := strings.LastIndexByte(user, '@')
		if at < 0 || !removed[user] && !removed[user[at:]] {
			return nil
		}
		return &limits.Error{Tenant: user[at+1:], Limit: limits.UserDisabled}
	}
}

// inUse returns the names of the tenants and users that are resources, as @TENANT and USER@TENANT. m may be nil.
func inUse(m *config.ResourceMerge) map[string]bool {
	names := map[string]bool{}
	if m == nil {
		return names
	}
	for _, o := range m.Outcomes {
		if o.Used != nil {
			names[account.Owner(o.User, o.Tenant)] = true
		}
	}
	return names
}
