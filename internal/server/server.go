package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/control"
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
}

// A Server serves the tenants of a configuration over FTP.
type Server struct {
	cfg     *config.Config
	log     *slog.Logger
	control *control.Server
	health  *health
	buckets []*bucket
	quotas  []*quota
	web     *http.Server // metrics and probes

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
	tlsCfg, err := tlsConfig(cfg, opts.Certificate, log)
	if err != nil {
		return nil, err
	}
	m := newMetrics(opts.Version)
	if opts.AWS == nil {
		if opts.AWS, err = loadAWS(ctx, log); err != nil {
			return nil, err
		}
	}
	factory := &s3Factory{base: opts.AWS, observe: m.observe, clients: map[s3Account]*s3.Client{}}
	buckets, err := newBuckets(cfg, factory)
	if err != nil {
		return nil, err
	}
	d, err := newDirectory(cfg, bundle, buckets)
	if err != nil {
		return nil, err
	}
	d.log = log
	d.uploads = driver.Options{
		PartSize:    int64(cfg.PartSize),
		Concurrency: cfg.UploadConcurrency,
		Streams:     cfg.DownloadConcurrency,
		Memory:      driver.NewBudget(int64(cfg.Memory)),
	}
	if d.verifier, err = newVerifier(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg,
		log: log,
		control: control.New(control.Config{
			Bundle:             bundle,
			Backend:            d,
			DefaultLanguage:    firstOffered(bundle, cfg.DefaultLanguage),
			AcceptUnknownHosts: cfg.UnknownHosts == config.IgnoreUnknownHosts,
			TLS:                tlsCfg,
			TLSRequired:        cfg.TLS.Required,
			PassivePorts:       control.PortRange(cfg.Passive.Ports),
			PublicAddress:      cfg.Passive.PublicAddress.Unmap(),
			IdleTimeout:        cfg.IdleTimeout,
			DataTimeout:        cfg.DataTimeout,
			StallTimeout:       cfg.StallTimeout,
			CommitDelay:        cfg.CommitDelay,
			MaxLogins:          cfg.MaxFailedLogins,
			Observer:           m,
			Logger:             log,
		}),
	}
	for _, name := range slices.Sorted(maps.Keys(buckets)) {
		s.buckets = append(append(s.buckets, buckets[name]), buckets[name].folders...)
	}
	s.quotas = d.quotas()
	m.registry.MustRegister(newQuotaMetrics(s.quotas))
	s.health = newHealth(s.buckets, log)
	s.web = &http.Server{
		Handler:           s.health.handler(m.handler()),
		ReadHeaderTimeout: requestTimeout,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return s, nil
}

// newBuckets makes each tenant's bucket, by the tenant's name.
func newBuckets(cfg *config.Config, factory *s3Factory) (map[string]*bucket, error) {
	buckets := map[string]*bucket{}
	for name, t := range cfg.Tenants {
		b := &bucket{tenant: name, name: t.Bucket, prefix: t.Prefix, account: accountOf(cfg.StorageOf(t))}
		b.objects, b.customerKey = objectsOf(&t.Objects), t.Objects.Key()
		b.says, b.keeps = cfg.StorageOf(t).Profile, t.Resume == config.KeepBroken
		levels := []level{{"tenants." + name + ".s3", t.S3}, {"s3", cfg.S3}}
		b.at = sectionsOf(levels)
		b.at.bucket = "tenants." + name + ".bucket"
		if err := b.connect(factory, t.Presign > 0, cfg.StorageOf(t).PublicEndpoint); err != nil {
			return nil, err
		}
		for _, folder := range slices.Sorted(maps.Keys(t.Folders)) {
			fc, key := t.Folders[folder], "tenants."+name+".folders."+folder
			storage := cfg.StorageOfFolder(t, fc)
			f := &bucket{tenant: name, folder: folder, name: fc.Bucket, prefix: fc.Prefix, account: accountOf(storage)}
			f.at = sectionsOf(append([]level{{key + ".s3", fc.S3}}, levels...))
			f.at.bucket = key + ".bucket"
			f.objects, f.customerKey = b.objects, b.customerKey
			f.says, f.keeps = storage.Profile, b.keeps
			if f.name == "" {
				f.name, f.at.bucket = b.name, b.at.bucket
			}
			if err := f.connect(factory, t.Presign > 0, storage.PublicEndpoint); err != nil {
				return nil, err
			}
			b.folders = append(b.folders, f)
		}
		buckets[name] = b
	}
	return buckets, nil
}

// A level is a section of the configuration that may say how an S3 server is reached.
type level struct {
	section string
	says    config.S3
}

// sectionsOf finds out which of the levels, the last of which is the server's, says what.
func sectionsOf(levels []level) sections {
	first := func(says func(config.S3) bool) string {
		for _, l := range levels[:len(levels)-1] {
			if says(l.says) {
				return l.section
			}
		}
		return levels[len(levels)-1].section
	}
	return sections{
		endpoint:    first(func(s config.S3) bool { return s.Endpoint != "" }),
		region:      first(func(s config.S3) bool { return s.Region != "" }),
		credentials: first(func(s config.S3) bool { return s.AccessKeyID != "" }),
	}
}

// connect gives a bucket its client, and its presigner where the tenant hands out links.
func (b *bucket) connect(factory *s3Factory, links bool, publicEndpoint string) (err error) {
	b.route = factory.route(b.account)
	if b.client, err = factory.client(b.account); err == nil && links {
		public := b.account
		public.endpoint = cmp.Or(publicEndpoint, public.endpoint)
		var client *s3.Client
		if client, err = factory.client(public); err == nil {
			b.presigner = s3.NewPresignClient(client)
		}
	}
	if err != nil {
		return b.failed(err, "its region is not known", "write %s.region, or set AWS_REGION", b.at.region)
	}
	return nil
}

// CheckBuckets asks S3 for all buckets of the tenants, finds out what their servers can do, and whether that is what the configuration
// promises. The error has one line for each that cannot be used.
func (s *Server) CheckBuckets(ctx context.Context) error {
	err := errors.Join(ofAll(s.buckets, func(b *bucket) error {
		server, err := b.reach(ctx)
		if err == nil {
			err = b.findProfile(ctx, server, s.log)
		}
		if err == nil {
			err = b.checkOverwrite(ctx)
		}
		if err == nil {
			err = b.checkResume()
		}
		return err
	})...)
	if err != nil {
		return err
	}
	s.health.reached()
	return nil
}

// openLedgers gives the buckets their ledgers, once it is known what their S3 servers can do.
func (s *Server) openLedgers() {
	if s.cfg.AbandonedUploads == 0 {
		return
	}
	for _, b := range s.buckets {
		b.ledger = driver.NewLedger(b.objectClient(), b.name, b.prefix, b.profile, b.objects, s.log.With("tenant", b.tenant))
	}
}

// A ListenError says which address of the configuration could not be listened on.
type ListenError struct {
	Key     string // of the configuration: listen, tls.implicit_listen or metrics_listen
	Address string
	Err     error
}

// Error is one line, with the key to change.
func (e *ListenError) Error() string {
	return fmt.Sprintf("cannot listen on %s: %v: choose another address with %s", e.Address, e.Err, e.Key)
}

// Unwrap returns the operating system's error.
func (e *ListenError) Unwrap() error { return e.Err }

// Start checks the buckets and opens the listeners. The probes are answered from the beginning. After an error nothing is open.
func (s *Server) Start(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			s.close()
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
	if err := s.CheckBuckets(ctx); err != nil {
		return err
	}
	s.openLedgers()
	if s.explicit, err = s.listen(ctx, "listen", s.cfg.Listen); err != nil {
		return err
	}
	s.implicit, err = s.listen(ctx, "tls.implicit_listen", s.cfg.TLS.ImplicitListen)
	return err
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
	for _, l := range []net.Listener{s.explicit, s.implicit, s.metrics} {
		if l != nil {
			_ = l.Close()
		}
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

// Serve runs sessions until Shutdown, and then returns nil. Sessions are cut when ctx ends; an error of one listener leaves the others
// to Shutdown.
func (s *Server) Serve(ctx context.Context) error {
	s.health.enter(serving)
	working, stop := context.WithCancel(ctx)
	defer stop()
	go s.sweepUploads(working)
	go s.countQuotas(working)
	go s.returnMemory(working)
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

// Shutdown accepts no new sessions, says goodbye to idle ones and lets running transfers end. When ctx ends it cuts what is left and
// returns an error. The probes are answered until then.
func (s *Server) Shutdown(ctx context.Context) error {
	s.health.enter(draining)
	defer s.web.Close()
	return s.control.Shutdown(ctx)
}
