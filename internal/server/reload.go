package server

import (
	"errors"
	"fmt"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/certs"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/users/account"
)

// maxProblems limits the problems of an invalid configuration that are logged.
const maxProblems = 20

// maxNames limits the tenants and users of each kind in the audit line of a reload.
const maxNames = 100

// A ReloadCause says in the audit log why the server reloaded its configuration.
type ReloadCause string

// Causes of reloads.
const (
	ReloadSignal ReloadCause = "SIGHUP"
	ReloadFiles  ReloadCause = "changed files"
	ReloadState  ReloadCause = "users in the shared state"
	// ReloadResources is the cause if custom resources have changed, even if users in the shared state have too.
	ReloadResources ReloadCause = "custom resources"
)

var errStopping = errors.New("the server is shutting down")

// Reload replaces the configuration by the one that load returns, or rejects it as a whole and logs why. It also logs
// the values that need a restart, and keeps the old ones. Tenants with an equal [config.Tenant] are not touched.
// Existing sessions keep their settings, and logged-in users keep their permissions, but limits, quotas and bans apply
// at once. The cause is written to the audit log.
func (s *Server) Reload(cause ReloadCause, load func() (*config.Config, error)) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if s.stopped {
		return errStopping
	}
	begun, before := time.Now(), s.active.Load().cfg
	cfg, err := panics.Result(load)
	if err == nil {
		err = s.replace(cfg)
	}
	if err != nil {
		s.metrics.Reloaded(s.active.Load().cfg.Hash(), err)
		s.refused.Store(&refusedReload{time.Now().UTC(), err})
		s.logRefused(err)
		s.auditReload(cause, changes{}, err)
		return err
	}
	cfg = s.active.Load().cfg
	s.auditReload(cause, changesOf(before, cfg), nil)
	s.refused.Store(nil)
	s.metrics.Reloaded(cfg.Hash(), nil)
	s.log.Info("configuration reloaded",
		"tenants", len(cfg.Tenants), "users", cfg.UsersCount(), "duration_ms", time.Since(begun).Milliseconds())
	return nil
}

// auditReload writes the audit line of a reload, with the hash of the configuration in use after it.
func (s *Server) auditReload(cause ReloadCause, c changes, err error) {
	hash, _ := s.configVersion()
	about := []any{"config_hash", hash}
	for _, of := range []struct {
		key   string
		names []string
	}{
		{"tenants_added", c.tenants.Added}, {"tenants_changed", c.tenants.Changed},
		{"tenants_removed", c.tenants.Removed},
		{"users_added", c.users.Added}, {"users_changed", c.users.Changed}, {"users_removed", c.users.Removed},
	} {
		if n := len(of.names); n > 0 {
			about = append(about, of.key, of.names[:min(n, maxNames)])
			if n > maxNames {
				about = append(about, of.key+"_more", n-maxNames)
			}
		}
	}
	s.auditLog.Write(&audit.Action{Event: "reload", Administrator: string(cause), Client: "server", About: about}, err)
}

// logRefused logs the problems of a configuration and their positions.
func (s *Server) logRefused(err error) {
	const message = "invalid configuration; keeping the previous one"
	if problems, ok := asProblems(err); ok {
		logProblems(s.log.Error, message, problems)
		return
	}
	s.log.Error(message, "err", err)
}

// asProblems returns the problems of a configuration, if err has their positions.
func asProblems(err error) (config.Problems, bool) { return errors.AsType[config.Problems](err) }

// showRefusedTexts logs the invalid texts of the current configuration and their positions.
func (s *Server) showRefusedTexts(cfg *config.Config) {
	refused := cfg.RefusedTexts()
	s.metrics.RefusedTexts(len(refused))
	logProblems(s.log.Warn, "invalid text; using the built-in one", refused)
}

func logProblems(log func(message string, args ...any), message string, problems config.Problems) {
	for _, p := range problems[:min(len(problems), maxProblems)] {
		log(message, "file", p.Source, "line", p.Line, "column", p.Column, "key", p.Path, "problem", p.Message)
	}
	if more := len(problems) - maxProblems; more > 0 {
		log(message, "more_problems", more)
	}
}

// replace prepares everything that can fail, and then applies the configuration. It sends no request. Buckets, queues
// and tenants that would be equal are kept.
func (s *Server) replace(next *config.Config) error {
	before := s.active.Load().mergedConfig
	cfg, kept, err := KeepFixed(before.files, next)
	if err != nil {
		return err
	}
	administrators, err := s.admin.prepare(cfg)
	if err != nil {
		return err
	}
	change, err := s.prepare(cfg)
	if err != nil {
		return err
	}

	for _, key := range kept {
		s.log.Warn(
			"a changed value or file needs a restart; keeping the previous one", "key", key)
	}
	if s.acme != nil {
		s.acme.SetHosts(cfg.TLS.ACME.Hosts)
	}
	if administrators != nil {
		administrators.Apply()
	}
	s.apply(change)
	s.showRefusedTexts(cfg)
	s.logIgnored(before)
	if s.opts.Resources != nil {
		s.opts.Resources.Configure(&cfg.Kubernetes)
	}
	return nil
}

// prepared is a configuration that is ready to be applied.
type prepared struct {
	*active
	certificates *certs.Change
	tenants      *account.Change
	queues       map[string]*tenantQueue
}

// prepare creates what a configuration needs, at the start and for each reload. It does not change anything in use.
// Equal buckets and queues are reused. The custom resources and the users in the shared state are added to the
// configuration.
func (s *Server) prepare(files *config.Config) (*prepared, error) {
	return s.prepareMerged(s.merge(files), s.certificates.Prepare)
}

// prepareMerged is like prepare, for a configuration with the custom resources and the users in the shared state.
func (s *Server) prepareMerged(
	m mergedConfig, prepareCertificates func(*config.Config) (*certs.Change, error),
) (*prepared, error) {
	cfg := m.cfg
	certificates, err := prepareCertificates(cfg)
	if err != nil {
		return nil, err
	}
	bundle, err := cfg.Bundle()
	if err != nil {
		return nil, fmt.Errorf("catalogs: %w", err)
	}
	var before map[string]*s3client.Bucket
	if current := s.active.Load(); current != nil {
		before = current.buckets
	}
	unsuited := map[*s3client.Bucket]bool{}
	for {
		buckets, err := s.factory.Buckets(cfg)
		if err != nil {
			return nil, err
		}
		s3client.Reuse(buckets, before, func(b *s3client.Bucket) bool { return !unsuited[b] })
		queues, err := s.newEventQueues(cfg, buckets)
		if err != nil {
			return nil, err
		}
		tenants, err := s.tenants.Prepare(cfg, bundle, buckets, sinksOf(queues), s.filesOf(cfg))
		if err != nil {
			return nil, err
		}
		if len(tenants.Unverified) == 0 {
			next := &active{
				mergedConfig: m, bundle: bundle, buckets: buckets, at: time.Now(), all: s3client.All(buckets),
			}
			return &prepared{next, certificates, tenants, queues}, nil
		}
		for _, b := range tenants.Unverified {
			unsuited[b] = true
		}
	}
}

// apply puts a configuration into use, at the start and for each reload. New sessions and logins get its values.
// Limits, quotas and bans also apply to existing sessions.
func (s *Server) apply(next *prepared) {
	cfg := next.cfg
	s.limits.Configure(cfg.Limits.Server.Bounds, cfg.Limits.Address.Bounds)
	s.bans.Configure(cfg.Limits.Bans, cfg.Limits.Server.Networks)
	next.certificates.Apply()
	before := s.active.Load()
	if before != nil {
		s.retire(before.all, next.all)
	}
	s.watcher.Watch(next.all)
	next.tenants.Apply()
	if before != nil {
		s.bans.EndSessions(removedResources(before.resources, next.resources))
	}
	s.active.Store(next.active)
	s.metrics.ShowTenants(cfg)
	s.useEventQueues(next.queues)
	s.factory.Forget(next.buckets)
	s.control.Configure(s.controlConfig(cfg, next.bundle))
	s.ports.SetStallTimeout(cfg.StallTimeout)
	if s.opts.LogLevel != nil {
		s.opts.LogLevel.Set(cfg.Log.Level)
	}
	if next.resources != nil {
		s.opts.Resources.Applied(next.resources)
	}
}

// changes are the tenants and users that a reload changed.
type changes struct {
	tenants config.TenantChanges
	users   config.UserChanges
}

func changesOf(before, next *config.Config) changes {
	return changes{next.TenantChanges(before), next.UserChanges(before)}
}

func (c changes) isEmpty() bool { return c.tenants.IsEmpty() && c.users.IsEmpty() }
