package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/acme"
	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/bans"
	"github.com/babelftp/babelftp/internal/certificates"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/control"
	"github.com/babelftp/babelftp/internal/dataconn"
	"github.com/babelftp/babelftp/internal/events"
	"github.com/babelftp/babelftp/internal/limits"
	"github.com/babelftp/babelftp/internal/s3client"
	"github.com/babelftp/babelftp/internal/tenant"
)

// Options is what a configuration does not say. The zero value is the default.
type Options struct {
	// AWS is where the S3 clients begin: their connections, and the endpoint, region and credentials of tenants for whom the
	// configuration names none. The default is what the AWS SDK finds in its environment and files.
	AWS *aws.Config

	// Certificate is shown where the configuration names no files.
	Certificate *tls.Certificate

	// Version is shown among the metrics.
	Version string

	// Logger gets what happens. The default discards it.
	Logger *slog.Logger

	// Stdout gets the audit log where the configuration asks for that. The default discards it.
	Stdout io.Writer
}

// A Server serves the tenants of a configuration over FTP.
type Server struct {
	cfg     *config.Config
	log     *slog.Logger
	audit   *auditLog
	control *control.Server
	health  *health
	buckets []*s3client.Bucket
	watcher *s3client.Watcher
	upkeep  chan struct{} // has room for the buckets that may be swept and counted at once
	tenants *tenant.Registry
	web     *http.Server             // metrics and probes
	admin   *http.Server             // on the socket of administrators
	events  map[string]*events.Queue // of the tenants with a webhook

	certificates *certificates.Set
	acme         *acme.Manager // nil without ACME

	endEvents func() // of sendEvents
	share     func(context.Context) (end func())
	endShare  func()

	explicit, implicit, metrics net.Listener // nil where the configuration asks for none
}

// New makes a server from a valid configuration. It opens no listener and sends no request to S3.
func New(ctx context.Context, cfg *config.Config, opts Options) (*Server, error) {
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	bundle, err := cfg.Bundle()
	if err != nil {
		return nil, fmt.Errorf("catalogues: %w", err)
	}
	m := newMetrics(opts.Version)
	var issuer certificates.Issuer
	var obtain *acme.Manager
	if cfg.TLS.ACME.Given() {
		if obtain, err = acme.New(cfg.TLS.ACME, acme.Options{Observe: m.issued, Logger: log}); err != nil {
			return nil, err
		}
		issuer = obtain
	}
	shown, err := certificates.Open(cfg, opts.Certificate, issuer, log)
	if err != nil {
		return nil, err
	}
	ports := dataconn.NewPorts(cfg.Passive.Ports)
	m.registry.MustRegister(passivePorts(ports))
	if opts.AWS == nil {
		if opts.AWS, err = s3client.LoadAWS(ctx, log); err != nil {
			return nil, err
		}
	}
	buckets, err := s3client.NewFactory(opts.AWS, m.observe, log).Buckets(cfg)
	if err != nil {
		return nil, err
	}
	list := bans.New(cfg.Limits.Bans, cfg.Limits.Networks, log, m.banned)
	shared := limits.NewServer(
		limits.Sessions{Most: cfg.Limits.Sessions, BeforeLogin: cfg.Limits.SessionsBeforeLogin},
		limits.Sessions{Most: cfg.Limits.SessionsPerAddress, BeforeLogin: cfg.Limits.SessionsBeforeLoginPerAddress},
		cfg.Limits.Limits(), cfg.Limits.PerAddress.Limits())
	shared.Guard = list
	share, err := shareBans(cfg, list, m)
	if err != nil {
		return nil, err
	}
	queues, err := newEventQueues(cfg, buckets, m, log)
	if err != nil {
		return nil, err
	}
	tenants, err := tenant.NewRegistry(cfg, bundle, buckets, tenant.Options{
		Files: driver.Options{
			PartSize:            int64(cfg.PartSize),
			UploadConcurrency:   cfg.UploadConcurrency,
			DownloadConcurrency: cfg.DownloadConcurrency,
			Memory:              driver.NewBudget(int64(cfg.Memory)),
		},
		Events: queues,
		Logger: log,
		Bans:   list,
	})
	if err != nil {
		return nil, err
	}
	audit, err := newAuditLog(ctx, cfg.Audit, cmp.Or[io.Writer](opts.Stdout, io.Discard), m.auditLost, log)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg:       cfg,
		log:       log,
		audit:     audit,
		tenants:   tenants,
		events:    queues,
		endEvents: func() {},
		share:     share,
		endShare:  func() {},
		upkeep:    make(chan struct{}, maxParallel),

		certificates: shown,
		acme:         obtain,

		control: control.New(control.Config{
			Bundle:             bundle,
			Backend:            tenants,
			DefaultLanguage:    tenant.FirstOffered(bundle, cfg.DefaultLanguage),
			AcceptUnknownHosts: cfg.UnknownHosts == config.IgnoreUnknownHosts,
			TLS:                shown.Config(),
			TLSRequired:        cfg.TLS.Required,
			PublicAddress:      cfg.Passive.PublicAddress.Unmap(),
			IdleTimeout:        cfg.IdleTimeout,
			Data: dataconn.Settings{
				Ports: ports, OpenTimeout: cfg.DataTimeout, StallTimeout: cfg.StallTimeout, MinRate: int64(cfg.Limits.MinUploadRate),
			},
			CommitDelay:    cfg.CommitDelay,
			MaxLogins:      cfg.MaxFailedLogins,
			Limits:         shared,
			LoginTimeout:   cfg.Limits.LoginTimeout,
			CommandTimeout: cfg.Limits.CommandTimeout,
			Observe:        audit.observer(m),
			Logger:         log,
		}),
	}
	for _, name := range slices.Sorted(maps.Keys(buckets)) {
		s.buckets = append(append(s.buckets, buckets[name]), buckets[name].Folders...)
	}
	s.watcher = &s3client.Watcher{Buckets: s.buckets, Log: log, Journals: cfg.AbandonedUploads > 0, Usable: s.bucketUsable}
	s.watcher.Prepare()
	m.registry.MustRegister(newQuotaMetrics(tenants.Quotas), newCertificateMetrics(shown), newBucketMetrics(s.buckets))
	s.health = &health{buckets: s.buckets}
	s.admin = &http.Server{Handler: admin.Handler(list), ReadHeaderTimeout: requestTimeout, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	s.web = &http.Server{
		Handler:           s.health.handler(m.handler()),
		ReadHeaderTimeout: requestTimeout,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return s, nil
}

// CheckBuckets asks S3 for all buckets of the tenants, finds out what their servers can do, and whether that is what the configuration
// promises. The error has one line for each that cannot be used. A server that runs does that by itself, and serves the others.
func (s *Server) CheckBuckets(ctx context.Context) error {
	return errors.Join(forEachLimit(s.buckets, func(b *s3client.Bucket) error { return b.Verify(ctx, s.log) })...)
}

// A ListenError says which address of the configuration could not be listened on.
type ListenError struct {
	Key     string // of the configuration: listen, tls.implicit_listen, metrics_listen or admin_socket
	Address string
	Err     error
}

// Error is one line, with the key to change.
func (e *ListenError) Error() string {
	return fmt.Sprintf("cannot listen on %s: %v: choose another address with %s", e.Address, e.Err, e.Key)
}

// Unwrap returns the operating system's error.
func (e *ListenError) Unwrap() error { return e.Err }

// Start opens the listeners. The probes are answered from the beginning. After an error nothing is open.
func (s *Server) Start(ctx context.Context) (err error) {
	if err := s.audit.open(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.close()
			s.endShare()
			s.audit.close(ctx, s.log)
		}
	}()
	if s.metrics, err = s.listen(ctx, "metrics_listen", s.cfg.MetricsListen); err != nil {
		return err
	}
	if s.metrics != nil {
		go func() {
			if err := s.web.Serve(s.metrics); !errors.Is(err, http.ErrServerClosed) {
				s.log.Error("metrics listener ended", "err", err)
			}
		}()
	}
	if path := s.cfg.AdminSocket; path != "" {
		l, err := admin.Listen(ctx, path)
		if err != nil {
			return &ListenError{Key: "admin_socket", Address: path, Err: err}
		}
		go func() {
			if err := s.admin.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				s.log.Error("admin socket closed", "err", err)
			}
		}()
	}
	s.endShare = s.share(context.WithoutCancel(ctx)) // also while sessions end
	if s.explicit, err = s.listen(ctx, "listen", s.cfg.Listen); err != nil {
		return err
	}
	if s.implicit, err = s.listen(ctx, "tls.implicit_listen", s.cfg.TLS.ImplicitListen); err != nil {
		return err
	}
	if s.acme != nil {
		if err = s.acme.Start(ctx, s.listen); err != nil {
			return err
		}
	}
	s.endEvents = s.sendEvents(context.WithoutCancel(ctx)) // also while sessions end
	return nil
}

// listen opens an address, or nothing for an empty one.
func (s *Server) listen(ctx context.Context, key, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		if call, ok := errors.AsType[*os.SyscallError](err); ok {
			err = call.Err // the address is in ListenError
		}
		return nil, &ListenError{Key: key, Address: address, Err: err}
	}
	s.log.Info("listening", "key", key, "address", l.Addr().String())
	return l, nil
}

// close closes what Start has opened.
func (s *Server) close() {
	_ = s.web.Close()
	_ = s.admin.Close()
	s.stopACME()
	for _, l := range []net.Listener{s.explicit, s.implicit, s.metrics} {
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
func (s *Server) MetricsAddr() net.Addr { return address(s.metrics) }

func address(l net.Listener) net.Addr {
	if l == nil {
		return nil
	}
	return l.Addr()
}

// Serve runs sessions until Shutdown, and then returns nil. A bucket that cannot be used keeps out its users only, until it can. Sessions are cut when ctx ends; an error of one listener leaves the others
// to Shutdown.
func (s *Server) Serve(ctx context.Context) error {
	s.health.enter(serving)
	working, stop := context.WithCancel(ctx)
	defer stop()
	go s.watcher.Run(working)
	go s.sweepUploads(working)
	go s.countQuotas(working)
	go s.returnMemory(working)
	go runEvery(working, warnEvery, func() { s.certificates.Warn(time.Now()) })
	ended := make(chan error, 2)
	listeners := 1
	go func() { ended <- s.control.Serve(ctx, s.explicit) }()
	if s.implicit != nil {
		listeners++
		go func() { ended <- s.control.ServeTLS(ctx, s.implicit) }()
	}
	for range listeners {
		if err := <-ended; err != nil {
			return err
		}
	}
	return nil
}

// Shutdown is not ready from then on, says goodbye to idle sessions and to new ones, and lets running transfers end. When ctx ends it ends
// what is left, within seconds, and returns an error. The probes are answered until then.
func (s *Server) Shutdown(ctx context.Context) error {
	s.health.enter(draining)
	defer s.web.Close()
	defer s.audit.close(ctx, s.log)
	defer s.admin.Close()
	defer s.endShare()
	defer s.stopACME()
	defer s.endEvents()
	return s.control.Shutdown(ctx)
}
