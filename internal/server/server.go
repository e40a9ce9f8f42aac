package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/admin/health"
	"github.com/babelftp/babelftp/internal/admin/metrics"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/listen"
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
	"github.com/babelftp/babelftp/internal/storage/access"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/users/account"
	"github.com/babelftp/babelftp/internal/users/bans"
)

// warnEvery is the time between two warnings of a certificate that ends soon.
const warnEvery = 24 * time.Hour

// Options is what a configuration does not say. The zero value is the default.
type Options struct {
	// AWS is where the S3 clients begin: their connections, and the endpoint, region and credentials of tenants for
	// whom the configuration names none. The default is what the AWS SDK finds in its environment and files.
	AWS *aws.Config

	// Certificate is shown where the configuration names no files.
	Certificate *tls.Certificate

	// Version is shown among the metrics.
	Version string

	// Logger gets what happens. The default discards it.
	Logger *slog.Logger

	// LogLevel is that of the Logger, which a reload sets; nil if nothing can.
	LogLevel *slog.LevelVar

	// Stdout gets the audit log where the configuration asks for that. The default discards it.
	Stdout io.Writer
}

// A Server serves the tenants of a configuration over FTP.
type Server struct {
	opts       Options
	log        *slog.Logger
	metrics    *metrics.Server
	audit      *audit.Output
	observe    func(*report.Client) report.Observers
	flushAudit func()
	control    *control.Server
	health     *health.Probe
	watcher    *s3client.Watcher
	upkeep     chan struct{} // has room for the buckets that may be swept and counted at once
	tenants    *account.Registry
	web        *web.Server // metrics and probes
	admin      *adminAccess
	queues     map[string]*tenantQueue // guarded by reloading
	events     events.Sender

	// What sessions of all configurations share.
	factory *s3client.Factory
	memory  *driver.Budget
	limits  *limits.Server
	bans    *bans.List

	active    atomic.Pointer[active]
	reloading sync.Mutex
	working   context.Context // of Serve, nil before; guarded by reloading, as is stopped
	stopped   bool

	ports        *dataPorts
	guard        *panics.Guard
	certificates *certs.Set
	acme         *certs.ACME // nil without ACME
	debug        *sessionlog.Switch
	traces       *tracing.Tracer // nil for none

	explicit, implicit, metricsListener net.Listener // nil where the configuration asks for none
}

// active is a configuration, and what the server has made of it.
type active struct {
	cfg     *config.Config
	bundle  *i18n.Bundle
	buckets map[string]*s3client.Bucket // by tenant
	at      time.Time                   // when it was read
	all     []*s3client.Bucket          // with those of folders
}

// New makes a server from a valid configuration. It opens no listener and sends no request to S3.
func New(ctx context.Context, cfg *config.Config, opts Options) (*Server, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	log := opts.Logger
	bundle, err := cfg.Bundle()
	if err != nil {
		return nil, fmt.Errorf("catalogues: %w", err)
	}
	m := metrics.New(opts.Version)
	if opts.AWS == nil {
		if opts.AWS, err = s3client.LoadEnvironment(ctx, log); err != nil {
			return nil, err
		}
	}
	traces, err := tracing.New(ctx, opts.Version, log)
	if err != nil {
		return nil, err
	}
	clients := s3client.NewFactory(opts.AWS, func(stack *middleware.Stack) error {
		return errors.Join(traces.Observe(stack), m.S3.Observe(stack))
	}, log)
	obtain, err := newACME(cfg, m.Issued, log)
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
	relays, guard := metrics.NewRelays(), panics.NewGuard(log)
	ports, err := newDataPorts(
		ctx, cfg, dataPortObserver{NoHeader: m.ProxyRefused, Missed: m.Missed, Relays: relays, Guard: guard}, log)
	if err != nil {
		return nil, err
	}
	if cfg.Cluster.Given() {
		m.MustRegister(relays)
	}
	s := &Server{
		opts: opts, log: log, metrics: m,
		factory: clients,
		memory:  driver.NewBudget(int64(cfg.Memory)),
		limits:  cfg.Limits.Server(),
		bans:    bans.New(cfg.Limits.Bans, cfg.Limits.Networks, log, m.Banned),
		upkeep:  make(chan struct{}, maxParallel),

		ports:        ports,
		guard:        guard,
		certificates: shown,
		acme:         obtain,
		debug:        &sessionlog.Switch{},
		traces:       traces,
	}
	s.limits.Guard = s.bans
	s.tenants = account.NewRegistry(log, s.bans)
	s.watcher = &s3client.Watcher{Log: log, AbandonedUploads: cfg.AbandonedUploads, Usable: s.bucketUsable}
	first, err := s.prepareTenants(cfg, bundle, nil)
	if err != nil {
		return nil, err
	}
	s.useTenants(first) // bucketUsable counts the quotas
	stdout := cmp.Or[io.Writer](opts.Stdout, io.Discard)
	if s.audit, err = audit.NewOutput(ctx, cfg.Audit, stdout, m.AuditLinesLost, log); err != nil {
		return nil, err
	}
	recent := recentEvents(cfg)
	s.observe, s.flushAudit = observeSessions(m, s.audit, recent, guard)
	s.control = control.New(s.controlConfig(cfg, bundle))
	m.MustRegister(
		metrics.NewPassivePorts(s.ports.Ports), metrics.NewQuotas(s.tenants.Quotas), metrics.NewCertificates(shown),
		metrics.NewBuckets(s.buckets),
		metrics.NewMemory(s.memory), metrics.NewUploads(s.buckets), metrics.NewBans(s.bans), metrics.NewPanics(guard))
	if traces != nil {
		m.MustRegister(metrics.NewTraces(traces.Spans))
	}
	m.InUse(cfg.Hash())
	s.health = &health.Probe{Buckets: s.countBuckets}
	if s.admin, err = s.newAdmin(cfg, recent); err != nil {
		return nil, err
	}
	s.web = web.NewServer(s.health.Handler(m.Handler()), web.Options{Probes: true, Log: log})
	s.showRefusedTexts(cfg)
	return s, nil
}

// filesOf are the options of the files of all users.
func (s *Server) filesOf(cfg *config.Config) driver.Options {
	return driver.Options{
		PartSize:            int64(cfg.PartSize),
		UploadConcurrency:   cfg.UploadConcurrency,
		DownloadConcurrency: cfg.DownloadConcurrency,
		Memory:              s.memory,
		MaxAttempts:         s.opts.AWS.RetryMaxAttempts, // AWS_MAX_ATTEMPTS
	}
}

// controlConfig is what sessions are begun with.
func (s *Server) controlConfig(cfg *config.Config, bundle *i18n.Bundle) control.Config {
	return control.Config{
		Bundle:             bundle,
		Backend:            s.tenants,
		DefaultLanguage:    account.FirstOffered(bundle, cfg.DefaultLanguage),
		BilingualGreeting:  cfg.BilingualGreeting,
		AcceptUnknownHosts: cfg.UnknownHosts == config.IgnoreUnknownHosts,
		TLS:                s.certificates.Config(),
		TLSRequired:        cfg.TLS.Required,
		PublicAddress:      s.ports.PublicAddress(cfg.Passive),
		IdleTimeout:        cfg.IdleTimeout,
		Ports:              s.ports.Ports,
		Data: dataconn.Settings{
			OpenTimeout: cfg.DataTimeout, StallTimeout: cfg.StallTimeout, MinRate: int64(cfg.Limits.MinUploadRate),
		},
		CommitDelay:    cfg.CommitDelay,
		MaxLogins:      cfg.MaxFailedLogins,
		Limits:         s.limits,
		LoginTimeout:   cfg.Limits.LoginTimeout,
		CommandTimeout: cfg.Limits.CommandTimeout,
		Observe:        s.observe,
		Logger:         s.log,
		Guard:          s.guard,
		Debug:          s.debug,
		Traces:         s.traces,
	}
}

// buckets are those of all tenants.
func (s *Server) buckets() []*s3client.Bucket { return s.active.Load().all }

// countBuckets tells how many buckets there are, and how many cannot be used.
func (s *Server) countBuckets() (all, down int) {
	buckets := s.buckets()
	for _, b := range buckets {
		if known, err := b.Up(); known && err != nil {
			down++
		}
	}
	return len(buckets), down
}

// ProbeBuckets tries what the server does in the buckets of all tenants: see [access.ProbeAll].
func (s *Server) ProbeBuckets(ctx context.Context, report func(*access.Report)) {
	access.ProbeAll(ctx, s.buckets(), s.log, report)
}

// DrainTimeout is how long running transfers may continue when the server stops, by the configuration in use.
func (s *Server) DrainTimeout() time.Duration { return s.active.Load().cfg.DrainTimeout }

// Bucket returns the bucket of a tenant, with those of its folders, and false where the configuration has no such
// tenant.
func (s *Server) Bucket(tenant string) (b *s3client.Bucket, ok bool) {
	b, ok = s.active.Load().buckets[tenant]
	return b, ok
}

// Start opens the listeners. The probes are answered from the beginning. After an error nothing is open.
func (s *Server) Start(ctx context.Context) (err error) {
	if err := s.audit.Open(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.close(ctx)
			s.audit.Close(ctx)
		}
	}()
	cfg := s.active.Load().cfg
	if s.metricsListener, err = s.listen(ctx, "metrics_listen", cfg.MetricsListen); err != nil {
		return err
	}
	if s.metricsListener != nil {
		panics.Go(func() {
			if err := s.web.Serve(s.metricsListener); !errors.Is(err, http.ErrServerClosed) {
				s.log.Error("metrics listener ended", "err", err)
			}
		})
	}
	if err = s.admin.start(ctx, cfg); err != nil {
		return err
	}
	if s.explicit, err = s.listen(ctx, "listen", cfg.Listen); err != nil {
		return err
	}
	if s.implicit, err = s.listen(ctx, "tls.implicit_listen", cfg.TLS.ImplicitListen); err != nil {
		return err
	}
	if err = s.ports.Start(ctx); err != nil {
		return err
	}
	if s.acme != nil {
		if err = s.acme.Start(ctx, s.listen); err != nil {
			return err
		}
	}
	s.events.Start(context.WithoutCancel(ctx)) // also while sessions end
	return nil
}

// listen opens an address, or nothing for an empty one.
func (s *Server) listen(ctx context.Context, key, address string) (net.Listener, error) {
	return listen.TCP(ctx, key, address, s.log)
}

// close closes what Start has opened.
func (s *Server) close(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	s.ports.Shutdown(ctx)
	_ = s.web.Close()
	s.admin.close()
	s.stopACME()
	for _, l := range []net.Listener{s.explicit, s.implicit, s.metricsListener} {
		if l != nil {
			_ = l.Close()
		}
	}
}

func (s *Server) stopACME() {
	if s.acme != nil {
		s.acme.Stop()
	}
}

// Addr is the address of the control connection, after Start.
func (s *Server) Addr() net.Addr { return s.explicit.Addr() }

// ImplicitAddr is the address of the control connection under implicit TLS, nil without one.
func (s *Server) ImplicitAddr() net.Addr { return address(s.implicit) }

// MetricsAddr is the address of the metrics and probes, nil without one.
func (s *Server) MetricsAddr() net.Addr { return address(s.metricsListener) }

func address(l net.Listener) net.Addr {
	if l == nil {
		return nil
	}
	return l.Addr()
}

// Serve runs sessions until Shutdown, and then returns nil. A bucket that cannot be used keeps out its users only,
// until it can. Sessions are cut when ctx ends; an error of one listener leaves the others to Shutdown.
func (s *Server) Serve(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	s.reloading.Lock()
	s.working = working
	s.reloading.Unlock()
	s.ports.WhenKnown(working, func() { s.health.Enter(health.Serving) })
	panics.Go(func() { s.watcher.Run(working) })
	panics.Go(func() { s.sweepUploads(working) })
	panics.Go(func() { s.countQuotas(working) })
	panics.Go(func() { keepIdleHeap(working) })
	panics.Go(func() {
		s.certificates.Warn(time.Now())
		repeat(working, warnEvery, func() { s.certificates.Warn(time.Now()) })
	})
	ended := make(chan error, 2)
	listeners := 1
	panics.Go(func() { ended <- s.control.Serve(ctx, s.ports.Trust.Listen(s.explicit)) })
	if s.implicit != nil {
		listeners++
		panics.Go(func() { ended <- s.control.ServeTLS(ctx, s.ports.Trust.Listen(s.implicit)) })
	}
	for range listeners {
		if err := <-ended; err != nil {
			return err
		}
	}
	return nil
}

// Shutdown is not ready from then on, says goodbye to idle sessions and to new ones, and lets running transfers end.
// When ctx ends it ends what is left, within seconds, and returns an error. The probes are answered until then.
func (s *Server) Shutdown(ctx context.Context) error {
	s.reloading.Lock()
	s.stopped = true
	s.reloading.Unlock()
	s.health.Enter(health.Draining)
	defer s.web.Close()
	defer s.traces.Shutdown(ctx)
	defer s.audit.Close(ctx)
	defer s.flushAudit()
	defer s.admin.close()
	defer s.stopACME()
	defer s.events.End()
	defer s.ports.Shutdown(ctx)
	for _, l := range []net.Listener{s.explicit, s.implicit} {
		if kept, ok := l.(listen.Inherited); ok {
			_ = kept.Close() // its clients wait for the next process, which needs no 421
		}
	}
	return s.control.Shutdown(ctx)
}
