package bans

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/keyring"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/storage/state"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }

// A replica is a list that is shared, and what it shows.
type replica struct {
	*List
	sharing *Sharing
	changed chan struct{} // receives when the list may have changed
	stop    func()
}

// startReplica starts a replica with its state in a bucket, until the end of the test.
func startReplica(t *testing.T, client state.Client, bucket string) *replica {
	t.Helper()
	keys, err := keyring.Parse(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", keyring.KeySize))))
	must.OK(t, err)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s := state.New(state.Options{Client: client, Bucket: bucket, Prefix: "state/", Keys: keys, Log: log})
	cfg := config.Bans{AddressScore: 4, UserScore: 4, Time: time.Hour, HalfLife: time.Hour}
	r := &replica{List: New(cfg, config.Networks{}, log, func(Ban) {}), changed: make(chan struct{}, 1)}
	key, err := keys.Derive("unknown users")
	must.OK(t, err)
	r.sharing = r.Share(s, key, log)
	s.Watch("", func([]state.Change) {
		select {
		case r.changed <- struct{}{}:
		default:
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx, nil) })
	running.Go(func() { r.sharing.Run(ctx) })
	r.stop = func() { cancel(); running.Wait(); s.Flush(context.WithoutCancel(ctx)) }
	t.Cleanup(r.stop)
	return r
}

// await waits until a condition holds.
func (r *replica) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-r.changed:
		case <-timeout:
			t.Fatalf("timeout: %s", what)
		}
	}
}

func (r *replica) refuses(addr, user string) bool {
	a, _ := netip.ParseAddr(addr)
	return refusedBy(r.Check(a, user)) == limits.Bans
}

// Bans, failed logins and the removal of a ban reach all replicas, and the ones that start later.
func TestShared(t *testing.T) {
	for _, name := range []string{"sim-aws", "minio", "versitygw"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := s3test.Start(t, name)
			client, bucket := server.Client(s3client.RetryUnstored("")), server.Bucket(t)
			a, b := startReplica(t, client, bucket), startReplica(t, client, bucket)
			a.Add("203.0.113.0/24", 0)
			b.await(t, "a ban by an administrator", func() bool { return b.refuses("203.0.113.9", "") })

			attacker := netip.MustParseAddr("198.51.100.7")
			for range 2 {
				a.LoginFailed(attacker, "")
			}
			b.await(t, "failed logins", func() bool {
				return b.sharing.points("198.51.100.7", time.Now(), time.Hour) > 1.9
			})
			for range 2 { // two failures there and two here are four
				b.LoginFailed(attacker, "")
			}
			if !b.refuses("198.51.100.7", "") {
				t.Error("the failed logins at two replicas do not add up")
			}
			a.await(t, "a ban after failed logins", func() bool { return a.refuses("198.51.100.7", "") })
			if c := startReplica(t, client, bucket); !c.refuses("198.51.100.7", "") {
				c.await(t, "a ban from before the start", func() bool { return c.refuses("198.51.100.7", "") })
			}

			if !a.Remove("198.51.100.7") {
				t.Error("Remove finds no ban")
			}
			b.await(t, "the removal of a ban", func() bool { return !b.refuses("198.51.100.7", "") })
			a.LoginFailed(attacker, "")
			if a.refuses("198.51.100.7", "") {
				t.Error("the first failure after the removal of a ban bans again")
			}
			short := a.Add("203.0.113.0/24", time.Minute)
			b.await(t, "a shorter ban", func() bool {
				all := b.All()
				return len(all) == 1 && all[0].Until.Equal(short.Until)
			})
			if !strings.HasPrefix(a.UnknownUser("x"), "unknown-") || a.UnknownUser("x") != b.UnknownUser("x") {
				t.Errorf("unknown users have the names %s and %s", a.UnknownUser("x"), b.UnknownUser("x"))
			}
		})
	}
}

// Strangers who fail with many names do not fill the store. Their bans hold on their own replica.
func TestSharedBansAreBounded(t *testing.T) {
	server := s3test.Start(t, "sim-aws")
	a := startReplica(t, server.Client(), server.Bucket(t))
	a.stop() // so that nothing is written
	for n := range maxSharedBans + 5 {
		name := fmt.Sprint("unknown-", n, "@")
		a.mu.Lock()
		a.ban(Ban{Name: name, Until: time.Now().Add(time.Hour), Reason: "failed logins"})
		a.mu.Unlock()
		if !a.refuses("", name) {
			t.Fatalf("%s is not banned", name)
		}
	}
	a.Add("203.0.113.7", 0)
	if _, shared := a.sharing.pending["203.0.113.7"]; !shared || len(a.sharing.pending) != maxSharedBans+1 {
		t.Errorf("%d bans are shared, the one of the administrator: %v", len(a.sharing.pending), shared)
	}
}

// A ban that S3 refused is shared when S3 works again, and expired bans are deleted from S3.
func TestSharedLater(t *testing.T) {
	server := s3test.Start(t, "minio")
	proxy := s3test.StartProxy(t, server)
	bucket := server.Bucket(t)
	a, b := startReplica(t, proxy.Server().Client(), bucket), startReplica(t, server.Client(), bucket)
	down := proxy.Inject(s3test.Fault{Effect: s3test.Refuse(503, "SlowDown")})
	a.Add("alice@acme", 0)
	if !a.refuses("", "alice@acme") {
		t.Error("the ban does not hold at its own replica")
	}
	down.End()
	b.await(t, "a ban that was written later", func() bool { return b.refuses("", "alice@acme") })

	a.Add("203.0.113.7", time.Nanosecond)
	short := a.Add("203.0.113.8", 2*time.Second)
	b.await(t, "a short ban", func() bool { return b.refuses("203.0.113.8", "") })
	<-time.After(time.Until(short.Until))
	b.sharing.clean(t.Context())
	for _, key := range s3test.Objects(t, server.Client(), bucket) {
		if strings.Contains(key, strings.TrimSuffix(folderOf("203.0.113.8"), "/")) {
			t.Errorf("an expired ban is left: %s", key)
		}
	}
}
