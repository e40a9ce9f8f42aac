package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/keyring"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/storage/state"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// BenchmarkUsersInState starts a server with 10,000 users in the shared state and no copy of it, and then changes one
// user at a time. The start may take 5 s and 100 MiB:
//
//	go test ./internal/server -run - -bench UsersInState -benchtime 5x
func BenchmarkUsersInState(b *testing.B) {
	const users = 10_000
	storage := s3test.Start(b, "sim-aws")
	cfg := stateConfig(b, storage)
	cfg.Tenants["acme"].UsersStore = config.StateStore
	ring, err := keyring.Parse(cfg.State.Keys.Reveal())
	must.OK(b, err)
	client := storage.Client(s3client.RetryUnstored(""))
	store := state.New(state.Options{Client: client, Bucket: cfg.State.Bucket, Prefix: cfg.State.Prefix, Keys: ring,
		Log: slog.New(slog.DiscardHandler)})
	hash := servicetest.PasswordHash().Reveal()
	item := func(n int, root string) {
		name := fmt.Sprintf("user-%05d", n)
		must.OK(b, usersfile.NewStore(usersfile.Options{
			Tenant: "acme", State: store, Check: func(string, usersfile.Place, []byte) error { return nil },
		}).Edit(b.Context(), name, func(d *usersfile.Document) error {
			if !d.Has(name) {
				d.Add(name)
			}
			if err := d.Set(name, root, "root"); err != nil {
				return err
			}
			return d.Set(name, hash, "password_hash")
		}))
	}
	var all sync.WaitGroup
	for part := range 32 {
		all.Go(func() {
			for n := part; n < users; n += 32 {
				item(n, "/x")
			}
		})
	}
	all.Wait()
	store.Flush(b.Context())
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, began := heap(), time.Now()
	srv, err := New(b.Context(), cfg, Options{AWS: storage.AWSConfig()})
	must.OK(b, err)
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	go srv.state.store.Run(ctx, nil)
	known, _ := srv.follow(ctx)
	<-known
	start, used := time.Since(began), heap()-before
	if n := srv.active.Load().cfg.UsersCount(); n < users {
		b.Fatalf("%d users", n)
	}
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		name := fmt.Sprintf("user-%05d", n)
		own := usersfile.NewStore(usersfile.Options{
			Tenant: "acme", State: srv.state.store, Check: func(string, usersfile.Place, []byte) error { return nil },
		})
		must.OK(b, own.Edit(ctx, name, func(d *usersfile.Document) error {
			return d.Set(name, fmt.Sprint("/", n), "root")
		}))
		b.StartTimer()
		srv.reloadMerged()
	}
	b.ReportMetric(start.Seconds(), "start-s")
	b.ReportMetric(float64(used)/(1<<20), "heap-MiB")
}

// A usersSite is a server whose tenant acme has its users in the shared state.
type usersSite struct {
	t     *testing.T
	proxy *s3test.Proxy
	cfg   *config.Config
	aws   *s3test.Server
}

func newUsersSite(t *testing.T) *usersSite {
	proxy := s3test.StartProxy(t, s3test.Start(t, "sim-aws"))
	cfg := stateConfig(t, proxy.Server())
	cfg.Tenants["acme"].UsersStore = config.StateStore
	cfg.Tenants["acme"].Users = nil
	return &usersSite{t, proxy, cfg, proxy.Server()}
}

// start starts a server that follows the shared state. The channel is closed when all users are known.
func (s *usersSite) start() (*Server, <-chan struct{}) {
	log := slog.New(slog.NewTextHandler(s.t.Output(), nil))
	srv, err := New(s.t.Context(), s.cfg, Options{AWS: s.aws.AWSConfig(), Logger: log})
	must.OK(s.t, err)
	ctx, stop := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() { srv.state.store.Run(ctx, nil) })
	s.t.Cleanup(func() { stop(); running.Wait(); srv.state.store.Flush(context.WithoutCancel(ctx)) })
	known, _ := srv.follow(ctx)
	return srv, known
}

// put stores a user as somebody else.
func (s *usersSite) put(srv *Server, name, settings string) {
	s.t.Helper()
	must.OK(s.t, srv.state.store.Update(s.t.Context(), s.item(srv, name), func([]byte) ([]byte, error) {
		return []byte("users: {" + name + ": {" + settings + "}}\n"), nil
	}))
}

// item returns the name of the item of a user.
func (s *usersSite) item(srv *Server, name string) string {
	store, _ := srv.UsersStore("acme")
	place, err := store.PlaceOfNew(name)
	must.OK(s.t, err)
	return place.Name[strings.Index(place.Name, usersfile.ItemsPrefix):]
}

// await waits until the tenant has exactly these users.
func (s *usersSite) await(srv *Server, want ...string) {
	s.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		got := slices.Sorted(maps.Keys(srv.active.Load().cfg.Tenants["acme"].Users))
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			s.t.Fatalf("the tenant has the users %q, want %q", got, want)
		}
	}
}

// An invalid user is ignored, and neither hides others nor blocks a reload. The configuration is checked again after
// each change.
func TestIgnoredUsers(t *testing.T) {
	s := newUsersSite(t)
	srv, known := s.start()
	<-known
	s.put(srv, "bob", "disabled: true")
	s.put(srv, "future", "disabled: true, a_key_of_a_newer_version: 1")
	s.put(srv, "long", "disabled: true, root: /"+strings.Repeat("x", 1100))
	s.put(srv, "fr", "disabled: true, language: fr")
	must.OK(t, srv.state.store.Update(t.Context(), usersfile.TenantPrefix("acme")+"eA", func([]byte) ([]byte, error) {
		return []byte("users: {someone-else: {disabled: true}}"), nil
	}))
	s.await(srv, "bob", "fr")
	var ignored []string
	for _, p := range srv.IgnoredUsers() {
		ignored = append(ignored, p.User)
	}
	if !slices.Equal(ignored, []string{"future", "long", "x"}) {
		t.Errorf("ignored %q", srv.IgnoredUsers())
	}
	next := *s.cfg
	acme := *s.cfg.Tenants["acme"]
	acme.Languages = []language.Tag{language.English}
	next.Tenants = map[string]*config.Tenant{"acme": &acme}
	must.OK(t, srv.Reload(ReloadFiles, func() (*config.Config, error) { return &next, nil }))
	s.await(srv, "bob")
	tenant := srv.active.Load().cfg.Tenants["acme"]
	srv.reloadMerged()
	if srv.active.Load().cfg.Tenants["acme"] != tenant {
		t.Error("a reload without a change has replaced the tenant")
	}
	store, _ := srv.UsersStore("acme")
	err := store.Edit(t.Context(), "bob", func(d *usersfile.Document) error { return d.Set("bob", "fr", "language") })
	const at = "tenants.acme.users.bob.language"
	if _, ok := errors.AsType[config.Problems](err); !ok || !strings.Contains(err.Error(), at) {
		t.Errorf("an invalid change returns %v", err)
	}
	must.OK(t, store.Edit(t.Context(), "future", func(d *usersfile.Document) error { return d.Remove("future") }))
	s.await(srv, "bob")
}

// Without a copy, the users are unknown until S3 works, and the server is not ready before. With a copy, they are known
// at once.
func TestUnknownUsers(t *testing.T) {
	s := newUsersSite(t)
	down := s.proxy.Inject(s3test.Fault{Effect: s3test.Refuse(503, "SlowDown")})
	srv, known := s.start()
	if !srv.active.Load().cfg.Tenants["acme"].UsersUnknown || isClosed(known) {
		t.Error("users are known although S3 is down")
	}
	down.End()
	<-known
	if srv.active.Load().cfg.Tenants["acme"].UsersUnknown {
		t.Error("users are unknown although S3 works")
	}
	s.put(srv, "bob", "disabled: true")
	s.await(srv, "bob")
	srv.state.store.Flush(t.Context())
	srv.state.store.Save()
	down = s.proxy.Inject(s3test.Fault{Effect: s3test.Refuse(503, "SlowDown")})
	defer down.End()
	again, known := s.start()
	<-known
	s.await(again, "bob")
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
