package server

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// The sessions of all replicas are summed, and the latest login counts.
func TestUsageOfReplicas(t *testing.T) {
	replicas := clusterOf(t, func(*config.Config, int) {})
	begun := time.Now().Truncate(time.Second)
	for n, sessions := range []int{1, 2} {
		for range sessions {
			c := ftptest.Dial(t, replicas[n].Addr().String())
			c.Login("alice", servicetest.Password)
		}
		ftptest.Dial(t, replicas[n].Addr().String()) // no login
	}
	for n, srv := range replicas {
		u := srv.Usage(t.Context())
		alice := u.Users["acme"]["alice"]
		if len(u.Users) != 1 || len(u.Users["acme"]) != 1 || alice.Sessions != 3 || alice.LastLogin.Before(begun) ||
			len(u.Missing) != 0 {
			t.Errorf("replica %d: got %+v", n, u)
		}
	}
}

// The usage of a replica that does not respond is missing, and the others are counted.
func TestUsageWithoutAReplica(t *testing.T) {
	replicas := clusterOf(t, func(cfg *config.Config, number int) {
		if number == 1 {
			cfg.Admin.Users = value.NewSecret(cfg.Admin.Users.Reveal() + "# other\n")
		}
	})
	for _, srv := range replicas {
		ftptest.Dial(t, srv.Addr().String()).Login("alice", servicetest.Password)
	}
	u := replicas[0].Usage(t.Context())
	if got := u.Users["acme"]["alice"].Sessions; got != 1 || len(u.Missing) != 1 ||
		!strings.Contains(fmt.Sprint(u.Missing[1]), "different secrets") {
		t.Errorf("got %+v", u)
	}
}

// The health of a tenant has the error of its bucket until the bucket exists, and its identity changes with what a
// probe tries.
func TestTenantHealth(t *testing.T) {
	s, cfg := simulated(t)
	bucket := cfg.Tenants["acme"].Bucket
	cfg.Tenants["acme"].Folders = map[string]*config.Folder{"/in": {Bucket: "missing-bucket"}}
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	if h := srv.TenantHealth("none"); h != (TenantHealth{}) {
		t.Errorf("unknown tenant: got %+v", h)
	}
	const want = `tenant acme: folder /in: bucket "missing-bucket": does not exist`
	h := srv.TenantHealth("acme")
	if !h.Checked || !strings.Contains(fmt.Sprint(h.Err), want) {
		t.Errorf("got %+v", h)
	}
	problems := srv.ProbeTenant(t.Context(), "acme")
	if len(problems) != 1 || problems[0] != h.Err.Error() {
		t.Errorf("the probe returns %q", problems)
	}
	change := func(change func(*config.Tenant)) TenantHealth {
		t.Helper()
		must.OK(t, srv.Reload(ReloadFiles, func() (*config.Config, error) {
			next, tenant := *cfg, *cfg.Tenants["acme"]
			change(&tenant)
			next.Tenants = map[string]*config.Tenant{"acme": &tenant}
			return &next, nil
		}))
		return srv.TenantHealth("acme")
	}
	if same := change(func(t *config.Tenant) { t.Quota = 1 << 30 }); same.Storage != h.Storage {
		t.Error("a quota changes the storage")
	}
	other := change(func(t *config.Tenant) {
		t.Folders = map[string]*config.Folder{"/in": {Bucket: bucket, Prefix: "in"}}
	})
	if other.Storage == h.Storage {
		t.Error("another bucket of a folder is the same storage")
	}
	waitForChecks(t, srv)
	if got := srv.TenantHealth("acme"); !got.Checked || got.Err != nil {
		t.Errorf("with buckets that exist: got %+v", got)
	}
	if got := srv.ProbeTenant(t.Context(), "acme"); len(got) > 0 {
		t.Errorf("the probe returns %q", got)
	}
	if got := srv.ProbeTenant(t.Context(), "none"); len(got) > 0 {
		t.Errorf("unknown tenant: the probe returns %q", got)
	}
}

// Sessions may use a bucket while it is probed. The race detector finds a probe that changes the bucket in use.
func TestProbeOfBucketInUse(t *testing.T) {
	s, cfg := simulated(t)
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	ctx, stop := context.WithCancel(t.Context())
	probed := make(chan []string)
	go func() {
		var problems []string
		for ctx.Err() == nil {
			problems = append(problems, srv.ProbeTenant(t.Context(), "acme")...)
		}
		probed <- problems
	}()
	for i := range 5 {
		c := ftptest.Dial(t, srv.Addr().String())
		c.Login("alice", servicetest.Password)
		c.Store(fmt.Sprint(i), "content")
		c.Want("content", fmt.Sprint("RETR ", i))
	}
	stop()
	if problems := <-probed; len(problems) > 0 {
		t.Errorf("the probe returns %q", problems)
	}
}

// Refused resources are problems on the console, and are counted.
func TestRefusedResources(t *testing.T) {
	s := newResourceSite(t, func(*config.Config) {})
	s.know()
	metric(t, s.srv, `babelftp_custom_resources{accepted="true",kind="FTPTenant"} 2`)
	metric(t, s.srv, `babelftp_custom_resources{accepted="false",kind="FTPUser"} 0`)
	metric(t, s.srv, `babelftp_custom_resources_leader 1`)
	s.change(func() {
		s.putTenant("shop", map[string]any{"bucket": "not-allowed"})
		s.putUser("carol", map[string]any{"tenant": "none", "password_hash_secret": map[string]any{"name": "alice"}})
	})
	s.await(t, "carol", s.isIn(s.users["carol"]))
	metric(t, s.srv, `babelftp_custom_resources{accepted="false",kind="FTPTenant"} 1`)
	metric(t, s.srv, `babelftp_custom_resources{accepted="false",kind="FTPUser"} 1`)
	found := map[string]string{}
	for _, p := range s.srv.problems() {
		if p.Kind == admin.ProblemResource && p.Text != "" {
			found[p.Subject] = p.Tenant + ": " + p.Action
		}
	}
	want := map[string]string{
		"FTPTenant team-a/shop": "team-a_shop: correct the resource; its previous version stays in use until then",
		"FTPUser team-a/carol":  ": correct the resource, which is not in use",
	}
	if !maps.Equal(found, want) {
		t.Errorf("got %q", found)
	}
	s.change(func() {
		for i := range 2 * maxProblems {
			s.putUser(fmt.Sprint("u", i), map[string]any{"tenant": "none"})
		}
	})
	last := fmt.Sprint("u", 2*maxProblems-1)
	s.await(t, last, s.isIn(s.users[last]))
	found = map[string]string{}
	for _, p := range s.srv.problems() {
		if p.Kind == admin.ProblemResource {
			found[p.Subject] = p.Text
		}
	}
	if more := fmt.Sprint(maxProblems+2, " more"); len(found) != maxProblems+1 || found[more] == "" {
		t.Errorf("got %q", found)
	}
}
