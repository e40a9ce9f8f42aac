package server

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// changed returns a valid copy of a configuration, with changes in the named tenants.
func changed(t *testing.T, cfg *config.Config, change func(*config.Config), tenants ...string) *config.Config {
	t.Helper()
	next := *cfg
	next.Tenants = maps.Clone(cfg.Tenants)
	for _, name := range tenants {
		tenant := *cfg.Tenants[name]
		tenant.Users = maps.Clone(tenant.Users)
		next.Tenants[name] = &tenant
	}
	change(&next)
	must.OK(t, next.Validate())
	return &next
}

// reload reloads the configuration of a server.
func reload(t *testing.T, srv *Server, cfg *config.Config) {
	t.Helper()
	must.OK(t, srv.Reload(ReloadFiles, func() (*config.Config, error) { return cfg, nil }))
}

// A reload changes the session limit of the server. Existing sessions count toward it.
func TestReloadOfLimits(t *testing.T) {
	s, cfg := simulated(t)
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	session(t, srv, "alice")
	for most, code := range map[int]int{1: 421, 4: 220} {
		reload(t, srv, changed(t, cfg, func(next *config.Config) { next.Limits.Server.Sessions = most }))
		dialFrom(t, srv, "127.0.0.1", code)
	}
}

// A removed tenant still serves its existing sessions. Its event queue and everything else end with the last session.
func TestReloadRemovesATenant(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	hook, received := newWebhook(t)
	cfg := servicetest.NewConfig(t, s)
	other := servicetest.NewConfig(t, s).Tenants["acme"]
	other.Hosts = []string{"ftp.other.example"}
	cfg.Tenants["other"] = other
	cfg.Tenants["acme"].Webhook = hook
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	c := session(t, srv, "alice")
	queues := func() bool {
		stacks := make([]byte, 1<<20)
		return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "events.(*Queue).Run(")
	}
	if !queues() {
		t.Error("no queue is running")
	}
	reload(t, srv, changed(t, cfg, func(next *config.Config) { delete(next.Tenants, "acme") }))
	stranger := ftptest.Dial(t, srv.Addr().String())
	stranger.Command(331, "USER alice@acme")
	stranger.Command(530, "PASS "+servicetest.Password)
	stranger.Command(504, "HOST ftp.acme.example")
	c.Store("/late", "x")
	if e := next(t, received); e.Path != "/late" || !e.Confirmed {
		t.Errorf("unexpected event %+v", e)
	}
	if !queues() {
		t.Error("the queue ended before the session")
	}
	c.Command(221, "QUIT")
	for range time.Tick(10 * time.Millisecond) {
		if !queues() {
			break
		}
	}
	if hasMetric(t, srv, `babelftp_bucket_up{folder="",tenant="acme"} 1`) {
		t.Error("the bucket of the removed tenant is still watched")
	}
	left := ftptest.Dial(t, srv.Addr().String())
	left.Login("alice@other", servicetest.Password)
}

// A queue is kept if its webhook and bucket are unchanged, whatever else changes.
func TestReloadKeepsQueuesAndBuckets(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Tenants["acme"].Webhook = config.Webhook{Receiver: config.Receiver{URL: "http://127.0.0.1:1/",
		Secret: value.NewSecret("0123456789abcdef")}}
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	session(t, srv, "alice")
	queue, bucket := srv.queues["acme"], srv.active.Load().buckets["acme"]
	next := changed(t, cfg, func(next *config.Config) {
		next.Tenants["acme"].Users["bob"] = next.Tenants["acme"].Users["alice"]
	}, "acme")
	reload(t, srv, next)
	if srv.queues["acme"] != queue || srv.active.Load().buckets["acme"] != bucket {
		t.Error("another user replaced the queue or the bucket")
	}
	// A user who must not overwrite files needs a bucket that was verified for it.
	deny := changed(t, next, func(next *config.Config) {
		bob := *next.Tenants["acme"].Users["bob"]
		bob.Overwrite = config.DenyOverwrite
		next.Tenants["acme"].Users["bob"] = &bob
	}, "acme")
	reload(t, srv, deny)
	if srv.queues["acme"] == queue || srv.active.Load().buckets["acme"] == bucket {
		t.Error("the bucket was not created again")
	}
	bob := session(t, srv, "bob")
	bob.Store("/file", "one")
	bob.Data()
	bob.Command(550, "STOR /file")
}

// An invalid configuration changes nothing.
func TestReloadIsRefused(t *testing.T) {
	s, cfg := simulated(t)
	cfg.AbandonedUploads = 0
	log := &servicetest.Log{}
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: log.Logger()})
	refused := 0
	for name, tc := range map[string]struct {
		load func() (*config.Config, error)
		want string
	}{
		"problems": {
			func() (*config.Config, error) {
				return config.NewLoader("testdata/none.yaml", nil).Load()
			},
			`msg="invalid configuration; keeping the previous one" err="cannot read the configuration testdata/none.yaml`,
		},
		"fixed-value": {
			func() (*config.Config, error) {
				return changed(t, cfg, func(next *config.Config) {
					next.AbandonedUploads = time.Hour
					next.Tenants["acme"].Resume = config.KeepInterrupted
				}, "acme"), nil
			},
			`conflicts with the values in use of abandoned_uploads, which need a restart: tenants.acme.resume: requires`,
		},
		"many-problems": {
			func() (*config.Config, error) {
				problems := config.Problems{}
				for range maxProblems + 2 {
					problems = append(problems, &problem)
				}
				return nil, problems
			}, `file=f.yaml line=3 column=7 key=tenants.acme.bucket problem="is missing"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := srv.Reload(ReloadFiles, tc.load); err == nil {
				t.Error("the invalid configuration was applied")
			}
			if !log.Has(tc.want) {
				t.Errorf("the log lacks %s:\n%s", tc.want, log)
			}
			wantMetrics(t, srv, "babelftp_config_reload_success 0")
			refused++
			wantMetrics(t, srv, fmt.Sprintf(`babelftp_config_reloads_total{result="refused"} %d`, refused))
			session(t, srv, "alice").Command(250, "CWD /")
		})
	}
	if !log.Has("more_problems=2") {
		t.Error("the log does not count the other problems")
	}
	reload(t, srv, cfg)
	wantMetrics(t, srv, "babelftp_config_reload_success 1")
}

var problem = yamlconf.Problem{Source: "f.yaml", Line: 3, Column: 7, Path: "tenants.acme.bucket", Message: "is missing"}

// Clients log in and transfer while the tenant is reloaded repeatedly, until the server shuts down.
func TestReloadWhileClientsWork(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Limits.Address.Sessions = 0
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	session(t, srv, "alice")
	var working sync.WaitGroup
	stop := make(chan struct{})
	working.Go(func() {
		for i := range 200 {
			select {
			case <-stop:
				return
			default:
			}
			next := changed(t, cfg, func(next *config.Config) {
				next.Tenants["acme"].Limits.Tenant.Sessions = 10 + i
				next.IdleTimeout = time.Minute + time.Duration(i%2)
				next.Tenants["acme"].Quota = bytesize.Size(1<<20 + i)
			}, "acme")
			if err := srv.Reload(ReloadFiles, func() (*config.Config, error) {
				return next, nil
			}); err != nil && !errors.Is(err, errStopping) {
				t.Error(err)
			}
		}
	})
	for range 20 {
		c := session(t, srv, "alice")
		c.Store("/file", "content")
		c.Want("content", "RETR /file")
		c.Command(221, "QUIT")
	}
	close(stop)
	working.Wait()
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	again := func() (*config.Config, error) { return cfg, nil }
	if err := srv.Reload(ReloadFiles, again); !errors.Is(err, errStopping) {
		t.Errorf("unexpected error of a stopped server: %v", err)
	}
}
