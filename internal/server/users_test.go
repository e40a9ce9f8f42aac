package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

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
	<-srv.followUsers(ctx)
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
		must.OK(b, own.Edit(ctx, name, func(d *usersfile.Document) error { return d.Set(name, fmt.Sprint("/", n), "root") }))
		b.StartTimer()
		srv.reloadUsers()
	}
	b.ReportMetric(start.Seconds(), "start-s")
	b.ReportMetric(float64(used)/(1<<20), "heap-MiB")
}
