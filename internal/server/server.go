package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/certs"
	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/report/events"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/report/tracing"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/users/account"
	"github.com/babelftp/babelftp/internal/users/bans"
)

// warnEvery is the time between two warnings about a certificate that expires soon.
const warnEvery = 24 * time.Hour

// Options holds what is not in the configuration. The zero value is useful.
type Options struct {
	// AWS is the base configuration of the S3 clients: their connections, and the endpoint, region and credentials of
	// tenants that configure none. The default is the environment of the AWS SDK.
	AWS *aws.Config

	// Certificate is used if the configuration names no files.
	Certificate *tls.Certificate

	// Version is shown in the metrics.
	Version string

	// Logger is the log. The default discards everything.
	Logger *slog.Logger

	// AdminToken lets one browser log in as an administrator, once, with the link /login?token=TOKEN. By default there
	// is no such link.
	AdminToken string

	// Tail keeps the last lines of Logger for administrators. The default keeps none.
	Tail *admin.LogTail

	// LogLevel is the level of Logger, which a reload sets. If it is nil, the level does not change.
	LogLevel *slog.LevelVar

	// CheckFiles reloads the configuration at once if its files have changed, and returns the error of the reload. If
	// it is nil, the server does not know the files of its configuration.
	CheckFiles func(context.Context) error

	// Stdout receives the audit log if the configuration says so. The default discards it.
	Stdout io.Writer

	// Resources adds tenants and users that are custom resources of Kubernetes. The default is none.
	Resources ResourceSource

	// For tests: the interval of event sweeps, and the limit of bytes of stored events.
	sweepEvents  time.Duration
	eventBacklog int
}

// A Server serves the tenants of a configuration over FTP.
type Server struct {
	opts     Options
	log      *slog.Logger
	metrics  *admin.Metrics
	audit    *audit.Output
	observe  func(*report.Client) report.Observers
	auditLog *audit.Log // nil if nobody reads it
	control  *control.Server
	health   *admin.Probe
	watcher  *s3client.Watcher
	upkeep   chan struct{} // semaphore for buckets that are swept or counted
	tenants  *account.Registry

	inspectors  inspectorProbes
	web         *web.Server // metrics and probes
	admin       *adminAccess
	queues      map[string]*tenantQueue // guarded by reloading
	events      events.Sender
	eventMemory *events.Memory

	// State that survives reloads.
	factory *s3client.Factory
	memory  *driver.Budget
	limits  *limits.Server
	bans    *bans.List
	state   *sharedState // nil without a state section

	active    atomic.Pointer[active]
	retired   sync.Map // buckets that reloads removed, until they have no unfinished upload; values are unused
	reloading sync.Mutex
	refused   atomic.Pointer[refusedReload] // nil if the last reload succeeded
	working   context.Context               // context of Serve, nil before; guarded by reloading, like stopped
	stopped   bool

	ports        *dataPorts
	guard        *panics.Guard
	certificates *certs.Set
	acme         *certs.ACME // nil without ACME
	debug        *sessionlog.Switch
	traces       *tracing.Tracer // nil without tracing

	explicit, implicit, metricsListener net.Listener // nil if not configured
}

// active is the configuration in use, and the state created from it.
type active struct {
	mergedConfig
	bundle  *i18n.Bundle
	buckets map[string]*s3client.Bucket // by tenant
	at      time.Time                   // time of the last reload
	all     []*s3client.Bucket          // including the buckets of folders
}

// buckets returns the buckets of all tenants.
func (s *Server) buckets() []*s3client.Bucket { return s.active.Load().all }

// countBuckets returns the number of buckets, and how many of them are not usable.
func (s *Server) countBuckets() (all, down int) {
	buckets := s.buckets()
	for _, b := range buckets {
		if known, err := b.Up(); known && err != nil {
			down++
		}
	}
	return len(buckets), down
}

// ProbeBuckets tries what the server does in the buckets of all tenants; see [s3client.ProbeAll].
func (s *Server) ProbeBuckets(ctx context.Context, report func(*s3client.Report)) {
	s3client.ProbeAll(ctx, s.buckets(), s.log, report)
}

// DrainTimeout returns how long running transfers may continue when the server stops.
func (s *Server) DrainTimeout() time.Duration { return s.active.Load().cfg.DrainTimeout }

// Bucket returns the bucket of a tenant, including the buckets of its folders. ok is false if the tenant does not
// exist.
func (s *Server) Bucket(tenant string) (b *s3client.Bucket, ok bool) {
	b, ok = s.active.Load().buckets[tenant]
	return b, ok
}

// Start opens the listeners. Health probes are served from the beginning. After an error, everything is closed.
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
				s.log.Error("metrics listener stopped unexpectedly", "err", err)
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
	s.events.Start(context.WithoutCancel(ctx)) // events are also sent while sessions end
	return nil
}

// listen opens an address, or nothing if it is empty.
func (s *Server) listen(ctx context.Context, key, address string) (net.Listener, error) {
	return listenTCP(ctx, key, address, s.log)
}

// close closes everything that Start opened.
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

// Addr returns the address of the control connection. Call it after Start.
func (s *Server) Addr() net.Addr { return s.explicit.Addr() }

// Serve runs sessions until Shutdown, and then returns nil. If a bucket is not usable, only its users are refused
// until it is. When ctx ends, sessions are cut. If one listener fails, Serve returns the error, and Shutdown ends the
// others.
func (s *Server) Serve(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	s.reloading.Lock()
	s.working = working
	s.reloading.Unlock()
	usersKnown, resourcesKnown := s.follow(working)
	s.ports.WhenKnown(working, func() {
		panics.Go(func() {
			if awaitKnown(working, usersKnown, resourcesKnown) {
				s.health.SetPhase(admin.Serving)
			}
		})
	})
	if s.opts.Resources != nil {
		defer s.runResources(working, stop)()
	}
	panics.Go(func() { s.watcher.Run(working) })
	panics.Go(func() { s.sweepUploads(working) })
	panics.Go(func() { repeat(working, removeEvery, func() { s.removeChangedUploads(working) }) })
	panics.Go(func() { s.countQuotas(working) })
	panics.Go(func() {
		s.probeInspectors(working)
		repeat(working, inspectorInterval, func() { s.probeInspectors(working) })
	})
	s.state.run(working, s.tenants, s.certificates.SetTicketKeys)
	panics.Go(func() { keepIdleHeap(working) })
	panics.Go(func() { s.admin.watch(working) })
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

// Shutdown makes the server not ready, says goodbye to idle and new sessions, and lets running transfers finish. When
// ctx ends, it ends the remaining ones within seconds and returns an error. Health probes are served until the end.
func (s *Server) Shutdown(ctx context.Context) error {
	s.reloading.Lock()
	s.stopped = true
	s.reloading.Unlock()
	s.health.SetPhase(admin.Draining)
	defer s.web.Close()
	defer s.traces.Shutdown(ctx)
	defer s.audit.Close(ctx)
	defer s.auditLog.Flush()
	defer s.admin.close()
	defer s.stopACME()
	defer s.events.End()
	defer s.tenants.Close()
	defer s.state.save()
	defer s.ports.Shutdown(ctx)
	for _, l := range []net.Listener{s.explicit, s.implicit} {
		if kept, ok := l.(inheritedListener); ok {
			_ = kept.Close() // its clients wait for the next process, so they should not get a 421
		}
	}
	defer func() {
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer done()
		s.removeChangedUploads(ctx)
	}()
	return s.control.Shutdown(ctx)
}
