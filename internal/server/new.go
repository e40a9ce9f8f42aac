package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"

	"github.com/aws/smithy-go/middleware"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/certs"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/report/events"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/report/tracing"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/users/account"
	"github.com/babelftp/babelftp/internal/users/bans"
)

// New returns a server for a valid configuration. It creates everything that outlives reloads, and then applies the
// configuration in the same way as a reload. It opens no listener and sends no request to S3.
func New(ctx context.Context, cfg *config.Config, opts Options) (*Server, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	log := opts.Logger
	m := admin.NewMetrics(opts.Version)
	if opts.AWS == nil {
		environment, err := s3client.LoadEnvironment(ctx, log)
		if err != nil {
			return nil, err
		}
		opts.AWS = environment
	}
	traces, err := tracing.New(ctx, opts.Version, log)
	if err != nil {
		return nil, err
	}
	clients := s3client.NewFactory(opts.AWS, func(stack *middleware.Stack) error {
		return errors.Join(traces.Observe(stack), m.S3.Observe(stack))
	}, log)
	shared, err := newState(cfg, clients, log)
	if err != nil {
		return nil, err
	}
	obtain, err := newACME(cfg, shared, m.Issued, log)
	if err != nil {
		return nil, err
	}
	var issuer certs.Issuer
	if obtain != nil {
		issuer = obtain
	}
	shown, err := certs.Open(cfg, opts.Certificate, issuer, log)
	if err != nil {
		return nil, err
	}
	relays, guard := admin.NewRelayMetrics(), panics.NewGuard(log)
	var s *Server
	ports, err := newDataPorts(ctx, cfg, dataPortObserver{
		NoHeader: m.ProxyRefused, Missed: m.Missed, Relays: relays, Guard: guard,
		Asked: func(conn net.Conn) { s.admin.peers.Serve(conn) },
	}, log)
	if err != nil {
		return nil, err
	}
	s = &Server{
		opts: opts, log: log, metrics: m,
		factory: clients,
		memory:  driver.NewBudget(int64(cfg.Memory)),
		limits:  limits.NewServer(limits.Bounds{}, limits.Bounds{}), // configured by apply, like bans and control
		bans:    bans.New(config.Bans{}, config.Networks{}, log, func(b bans.Ban) { s.recordBan(b) }),
		upkeep:  make(chan struct{}, maxParallel),

		eventMemory: events.NewMemory(),

		control:      control.New(control.Config{Ports: ports.Ports, Logger: log, Guard: guard}),
		ports:        ports,
		guard:        guard,
		certificates: shown,
		acme:         obtain,
		state:        shared,
		debug:        &sessionlog.Switch{},
		traces:       traces,
	}
	if err := shared.shareBans(cfg, s.bans); err != nil {
		return nil, err
	}
	s.limits.Guard = s.bans
	s.tenants = account.NewRegistry(log, s.bans)
	s.tenants.ShareUsers(shared.items())
	if opts.Resources != nil {
		opts.Resources.Configure(&cfg.Kubernetes)
	}
	s.watcher = &s3client.Watcher{Log: log, AbandonedUploads: cfg.AbandonedUploads, Usable: s.bucketUsable}
	first, err := s.prepare(cfg)
	if err != nil {
		return nil, err
	}
	stdout := cmp.Or[io.Writer](opts.Stdout, io.Discard)
	if s.audit, err = audit.NewOutput(ctx, cfg.Audit, stdout, m.AuditLinesLost, log); err != nil {
		return nil, err
	}
	recent := recentEvents(cfg)
	s.auditLog = newAuditLog(s.audit, recent, guard, cfg.Cluster.IsSet(), ports.number)
	s.observe = func(c *report.Client) report.Observers {
		if s.auditLog == nil {
			return report.Observers{m}
		}
		return report.Observers{m, s.auditLog.Session(c)}
	}
	s.apply(first)
	s.showRefusedTexts(cfg)
	s.logIgnored(mergedConfig{})
	s.registerCollectors()
	if cfg.Cluster.IsSet() {
		m.MustRegister(relays.Collectors()...)
	}
	m.InUse(cfg.Hash())
	s.health = &admin.Probe{Buckets: s.countBuckets}
	if s.admin, err = s.newAdmin(cfg, recent); err != nil {
		return nil, err
	}
	s.web = web.NewServer(s.health.Handler(m.Handler()), web.Options{Probes: true, Log: log})
	return s, nil
}

// recordBan counts a ban, and writes it to the audit log unless an administrator set it, which is already logged.
func (s *Server) recordBan(b bans.Ban) {
	s.metrics.Banned(b.Kind())
	if !b.ByAdministrator() {
		s.auditLog.Write(&audit.Action{
			Event: "ban", Administrator: b.Reason, Client: "server", About: []any{"banned", b.Name, "until", b.Until.UTC()},
		}, nil)
	}
}

// registerCollectors adds the metrics of the server's parts.
func (s *Server) registerCollectors() {
	s.metrics.MustRegister(
		admin.CollectPassivePorts(s.ports.Ports), admin.CollectQuotas(s.tenants.Quotas),
		admin.CollectCertificates(s.certificates), admin.CollectBuckets(s.buckets), admin.CollectMemory(s.memory),
		admin.CollectUploads(s.buckets), admin.CollectBans(s.bans), admin.CollectPanics(s.guard),
		admin.CollectAudit(s.audit.Backlogs), admin.CollectInspectors(s.inspectorsUp),
		admin.CollectOldKeys(s.tenants.SessionsWithOldKeys))
	if s.state != nil {
		s.metrics.MustRegister(admin.CollectState(s.state.store))
	}
	if r := s.opts.Resources; r != nil {
		s.metrics.MustRegister(admin.CollectKubernetes(r.Problem))
		s.metrics.MustRegister(admin.CollectResources(
			func() *config.ResourceMerge { return s.active.Load().resources }, r.Leading))
	}
	if s.traces != nil {
		s.metrics.MustRegister(admin.CollectTraces(s.traces.Spans))
	}
}

// newAuditLog returns the audit log, or nil if nobody reads it. recent may be nil. In a cluster,
// each line has the number of the replica.
func newAuditLog(out *audit.Output, recent *audit.Recent, guard *panics.Guard, cluster bool, replica int) *audit.Log {
	var to audit.Sink = out
	switch {
	case recent != nil:
		to = audit.Sinks{recent, out}
	case !out.HasDestinations():
		return nil
	}
	if cluster {
		return audit.New(to, out.HasRoom, guard, "replica", replica)
	}
	return audit.New(to, out.HasRoom, guard)
}

// filesOf returns the driver options that all users share.
func (s *Server) filesOf(cfg *config.Config) driver.Options {
	return driver.Options{
		PartSize:    int64(cfg.PartSize),
		Memory:      s.memory,
		MaxAttempts: s.opts.AWS.RetryMaxAttempts, // AWS_MAX_ATTEMPTS
	}
}

// minUploadRate is the minimum speed of an upload, in bytes per minute: a quarter of the 2,400 bits per second of a
// satellite phone.
const minUploadRate = 4 << 10

// controlConfig returns the settings of new sessions.
func (s *Server) controlConfig(cfg *config.Config, bundle *i18n.Bundle) control.Config {
	return control.Config{
		Bundle:             bundle,
		Backend:            s.tenants,
		DefaultLanguage:    account.FirstOffered(bundle, cfg.DefaultLanguage),
		AcceptUnknownHosts: !cfg.HasHosts(),
		TLS:                s.certificates.Config(),
		TLSRequired:        cfg.TLS.IsRequired(),
		TLSOptional:        cfg.TLS.Optional(),
		PublicAddress:      s.ports.PublicAddress(cfg.Passive),
		IdleTimeout:        cfg.IdleTimeout,
		Ports:              s.ports.Ports,
		Data: dataconn.Config{
			OpenTimeout: min(cfg.DataTimeout, cfg.StallTimeout), StallTimeout: cfg.StallTimeout, MinRate: minUploadRate,
		},
		CommitDelay:  cfg.CommitDelay,
		MaxLogins:    cfg.MaxFailedLogins,
		Limits:       s.limits,
		LoginTimeout: cfg.Limits.LoginTimeout,
		Observe:      s.observe,
		Unaudited: func(tenant, user string) bool {
			return s.audit.Refuses(report.Owner{Tenant: tenant, User: user})
		},
		Logger: s.log,
		Guard:  s.guard,
		Debug:  s.debug,
		Traces: s.traces,
	}
}
