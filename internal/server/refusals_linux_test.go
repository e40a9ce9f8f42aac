package server

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// refusals returns the values of babelftp_refusals_total for the whole server, by the label limit.
func refusals(t *testing.T, srv *Server) map[string]string {
	t.Helper()
	_, body := get(t, srv, "/metrics")
	counts := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^babelftp_refusals_total\{limit="(.*?)",tenant=""\} (\d+)$`).
		FindAllStringSubmatch(body, -1) {
		counts[m[1]] = m[2]
	}
	return counts
}

// A provocation makes a server refuse a client because of one limit.
type provocation struct {
	configure func(*testing.T, *config.Config)
	provoke   func(*testing.T, *Server)
}

// greeted connects n times, and expects the last connection to be refused.
func greeted(n int) func(*testing.T, *Server) {
	return func(t *testing.T, srv *Server) {
		t.Helper()
		for range n - 1 {
			dialFrom(t, srv, "127.0.0.1", 220)
		}
		dialFrom(t, srv, "127.0.0.1", 421)
	}
}

func twoTransfers(t *testing.T, srv *Server) {
	t.Helper()
	c, other := session(t, srv, "alice"), session(t, srv, "alice")
	data := c.Data()
	defer data.Close()
	c.Command(150, "STOR f")
	defer other.Data().Close()
	other.Command(450, "STOR g")
}

func loginsUntilRefused(t *testing.T, srv *Server) {
	t.Helper()
	for {
		c, _ := dialFrom(t, srv, "127.0.0.1", 220)
		c.Command(331, "USER alice")
		reply, err := c.Send("PASS " + servicetest.Password)
		must.OK(t, err)
		if strings.HasPrefix(reply, "421") {
			return
		}
	}
}

func commandsUntilRefused(t *testing.T, srv *Server) {
	t.Helper()
	refused := make(chan struct{}, 1)
	for range 30 { // each has at most one waiting command
		conn, err := ftptest.Open(srv.Addr().String())
		must.OK(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		go func() {
			for {
				reply, err := conn.Send("NOOP")
				if strings.HasPrefix(reply, "421") {
					select {
					case refused <- struct{}{}:
					default:
					}
				}
				if err != nil || strings.HasPrefix(reply, "421") {
					return
				}
			}
		}()
	}
	<-refused
}

// withoutDescriptors connects while the process can open almost no more descriptors.
func withoutDescriptors(t *testing.T, srv *Server) {
	t.Helper()
	var before unix.Rlimit
	must.OK(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	defer func() { must.OK(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) }()
	for { // another goroutine may close a descriptor at the same time
		var last uintptr
		for last < 100 {
			f, err := os.Open(os.DevNull)
			must.OK(t, err)
			defer f.Close()
			last = f.Fd()
		}
		few := before
		few.Cur = uint64(last) + 4 // both ends of the connection are within the reserve of a quarter
		must.OK(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
		c, err := ftptest.Open(srv.Addr().String())
		must.OK(t, err)
		defer c.Close()
		reply, err := c.Reply()
		must.OK(t, err)
		if strings.HasPrefix(reply, "421") {
			return
		}
		must.OK(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
	}
}

// twoOperations renames a directory while a user of another tenant renames one. A single user gets only a share.
func twoOperations(s3 *holdingS3) func(*testing.T, *Server) {
	return func(t *testing.T, srv *Server) {
		t.Helper()
		c, other := session(t, srv, "alice"), ftptest.Dial(t, srv.Addr().String())
		other.Login("alice@other", servicetest.Password)
		c.Command(350, "RNFR /a")
		done := make(chan error, 1)
		go func() {
			_, err := c.Send("RNTO /moved")
			done <- err
		}()
		<-s3.held
		other.Command(350, "RNFR /b")
		other.Command(450, "RNTO /c")
		s3.let()
		must.OK(t, <-done)
	}
}

// TestRefusalsOfServer checks that the server really counts each limit that babelftp_refusals_total shows at the
// start. With another label, the series would begin with the first refusals, and an alert would miss the increase.
func TestRefusalsOfServer(t *testing.T) {
	with := func(change func(*config.Limits)) func(*testing.T, *config.Config) {
		return func(_ *testing.T, cfg *config.Config) { change(&cfg.Limits) }
	}
	provocations := map[string]provocation{
		"server.sessions":       {with(func(l *config.Limits) { l.Server.Sessions = 1 }), greeted(2)},
		"address.sessions":      {with(func(l *config.Limits) { l.Address.Sessions = 1 }), greeted(2)},
		"sessions_before_login": {with(func(l *config.Limits) { l.Server.Sessions = 4 }), greeted(3)},
		"server.transfers":      {with(func(l *config.Limits) { l.Server.Transfers = 1 }), twoTransfers},
		"address.transfers":     {with(func(l *config.Limits) { l.Address.Transfers = 1 }), twoTransfers},
		"server.login_rate":     {with(func(l *config.Limits) { l.Server.LoginRate = 1 }), loginsUntilRefused},
		"address.login_rate":    {with(func(l *config.Limits) { l.Address.LoginRate = 1 }), loginsUntilRefused},
		"server.command_rate":   {with(func(l *config.Limits) { l.Server.CommandRate = 1 }), commandsUntilRefused},
		"address.command_rate":  {with(func(l *config.Limits) { l.Address.CommandRate = 1 }), commandsUntilRefused},
		"server.operations":     {with(func(l *config.Limits) { l.Server.Operations = 1 }), nil},
		"address.operations":    {with(func(l *config.Limits) { l.Address.Operations = 1 }), nil},
		limits.LoginTimeout: {
			with(func(l *config.Limits) { l.LoginTimeout = 50 * time.Millisecond }),
			func(t *testing.T, srv *Server) {
				c, _ := dialFrom(t, srv, "127.0.0.1", 220)
				c.Reply(421)
			},
		},
		limits.PassivePorts: {
			func(t *testing.T, cfg *config.Config) { cfg.Passive.Ports = passivePortRange(t, 1) },
			func(t *testing.T, srv *Server) {
				session(t, srv, "alice").Command(229, "EPSV")
				session(t, srv, "alice").Command(425, "EPSV")
			},
		},
		limits.Descriptors: {with(func(*config.Limits) {}), withoutDescriptors},
		limits.Bans: {
			with(func(l *config.Limits) { l.Bans.AddressScore, l.Bans.HalfLife = 1, 24*time.Hour }),
			func(t *testing.T, srv *Server) {
				c, _ := dialFrom(t, srv, "127.0.0.1", 220)
				for range 2 {
					_, _ = c.Send("USER alice")
					_, _ = c.Send("PASS wrong") // the ban cuts the session
				}
				dialFrom(t, srv, "127.0.0.1", 421)
			},
		},
		limits.Deny: {
			func(t *testing.T, cfg *config.Config) { cfg.Limits.Server.Deny = networks(t, "127.0.0.1") },
			greeted(1),
		},
	}
	for _, limit := range limits.ServerWide() {
		t.Run(limit, func(t *testing.T) {
			p, there := provocations[limit]
			if !there {
				t.Fatal("the test does not know how to reach this limit")
			}
			s, cfg := simulated(t)
			opts := Options{AWS: s.AWSConfig()}
			p.configure(t, cfg)
			if p.provoke == nil {
				put(t, s, cfg, "a/1", "a/2", "b/1")
				other := *cfg.Tenants["acme"]
				other.Hosts = []string{"ftp.other.example"}
				cfg.Tenants["other"] = &other
				p.provoke = twoOperations(hold(t, opts.AWS))
			}
			srv := start(t, cfg, opts)
			shown := slices.Sorted(maps.Keys(refusals(t, srv)))
			if want := slices.Sorted(slices.Values(limits.ServerWide())); !slices.Equal(shown, want) {
				t.Fatalf("new server: got limits %q, want %q", shown, want)
			}
			p.provoke(t, srv)
			if n := refusals(t, srv)[limit]; n == "0" {
				t.Errorf("the refusal was not counted: %v", refusals(t, srv))
			}
		})
	}
}
