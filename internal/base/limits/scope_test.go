package limits

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// limitOf returns the tenant and the name of the limit in an error, or "" for nil.
func limitOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	reached, ok := errors.AsType[*Error](err)
	if !ok || !errors.Is(err, syscall.EBUSY) {
		t.Fatalf("%v is not a limits.Error", err)
	}
	return reached.Tenant + ":" + reached.Limit
}

// TestAcquire checks that the error names the narrowest full scope, and that a refusal counts in no scope.
func TestAcquire(t *testing.T) {
	tenant := NewTenant("acme", Usage{Sessions: 3, Transfers: 2})
	alice, bob := NewUser("acme", Usage{Sessions: 2, Transfers: 1}), NewUser("acme", Usage{})
	acquire := func(user *Scope, want string) func() {
		t.Helper()
		release, err := Scopes{tenant, user}.AcquireTransfer()
		if got := limitOf(t, err); got != want {
			t.Errorf("limit %q, want %q", got, want)
		}
		return release
	}
	first := acquire(alice, "")
	acquire(alice, "acme:user.transfers")
	second := acquire(bob, "")
	acquire(bob, "acme:tenant.transfers")
	first()
	second()
	acquire(alice, "")()
	for _, scope := range []*Scope{tenant, alice, bob} {
		if n := scope.counts[transfers].used; n != 0 {
			t.Errorf("got %d transfers after all ended", n)
		}
	}
}

// admitter returns a function that admits a session from an address and logs it in, or checks the limit that refuses
// it.
func admitter(t *testing.T, s *Server) func(addr, want string) (release func()) {
	return func(addr, want string) func() {
		t.Helper()
		scopes, release, err := s.Admit(&Session{Addr: netip.MustParseAddr(addr)})
		if got := limitOf(t, err); got != want {
			t.Errorf("%s: limit %q, want %q", addr, got, want)
		}
		if err != nil {
			return nil
		}
		loggedOut := scopes.LogIn()
		return func() { loggedOut(); release() }
	}
}

// TestSessionsBeforeLogin checks that at most half of the sessions may be without a login. A session that logs out
// counts again, even above the limit.
func TestSessionsBeforeLogin(t *testing.T) {
	s := NewServer(Bounds{Usage: Usage{Sessions: 5}}, Bounds{})
	admit := func(addr, want string) (Scopes, func()) {
		t.Helper()
		scopes, release, err := s.Admit(&Session{Addr: netip.MustParseAddr(addr)})
		if got := limitOf(t, err); got != want {
			t.Errorf("%s: limit %q, want %q", addr, got, want)
		}
		return scopes, release
	}
	const a, b = "192.0.2.1", "192.0.2.2"
	first, releaseFirst := admit(a, "")
	_, releaseSecond := admit(a, "")
	loggedOut := first.LogIn()
	_, releaseThird := admit(a, "")
	_, releaseFourth := admit(b, "")
	admit(b, ":sessions_before_login")
	loggedOut()
	for _, release := range []func(){releaseFirst, releaseSecond, releaseThird, releaseFourth} {
		release()
	}
	if s.scope.counts[beforeLogin].used != 0 || s.scope.counts[sessions].used != 0 {
		t.Errorf("%d sessions before login and %d in total after all have ended",
			s.scope.counts[beforeLogin].used, s.scope.counts[sessions].used)
	}
}

// TestAddressRate checks that the rate of an address is kept after its sessions have ended, and is forgotten later.
func TestAddressRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Bounds{}, Bounds{Work: Work{LoginRate: 2}})
		login := func(addr netip.Addr, want string) {
			t.Helper()
			scopes, release, err := s.Admit(&Session{Addr: addr})
			must.OK(t, err)
			defer release()
			if got := limitOf(t, scopes.Login()); got != want {
				t.Errorf("limit %q, want %q", got, want)
			}
		}
		a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		login(a, "")
		login(a, "")
		login(a, ":address.login_rate")
		login(b, "")
		time.Sleep(time.Second / 2)
		login(a, "")
		login(a, ":address.login_rate")

		addr := netip.MustParseAddr("198.51.100.0")
		for range sweepAt - 2 {
			login(addr, "")
			addr = addr.Next()
		}
		time.Sleep(2 * addressIdle)
		login(addr, "")
		if n := s.addresses.Len(); n >= sweepAt {
			t.Errorf("got %d remembered addresses", n)
		}
	})
}

// TestCommandRate checks that commands above the rate wait, and that a command is refused if the wait would be too
// long, without delaying others.
func TestCommandRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := Scopes{newScope("acme", tenantPrefix, Bounds{Work: Work{CommandRate: 2}}), NewUser("acme", Usage{})}
		for i, want := range []time.Duration{0, 0, time.Second / 2, time.Second} {
			if wait, err := scopes.Command(); err != nil || wait != want {
				t.Errorf("command %d: got wait %v, want %v: %v", i, wait, want, err)
			}
		}
		for {
			if _, err := scopes.Command(); err != nil {
				if got := limitOf(t, err); got != "acme:tenant.command_rate" {
					t.Errorf("limit %q", got)
				}
				break
			}
		}
		time.Sleep(maxCommandWait + time.Second)
		if wait, err := scopes.Command(); err != nil || wait != 0 {
			t.Errorf("afterward: got wait %v: %v", wait, err)
		}
	})
}

// TestPace checks that transfers share the rates of their tenant and of their user.
func TestPace(t *testing.T) {
	const second, bytes = time.Second, 1 << 20
	synctest.Test(t, func(t *testing.T) {
		tenant := NewTenant("acme", Usage{DownloadRate: bytes})
		alice := Scopes{tenant, NewUser("acme", Usage{DownloadRate: bytes / 4})}
		bob := Scopes{tenant, NewUser("acme", Usage{})}
		if alice.Pace(true) != nil {
			t.Error("unexpected rate for uploads")
		}
		begin := time.Now()
		ended := make(chan time.Duration, 2)
		move := func(pace Pace, n int) {
			if err := pace.Take(t.Context(), n); err != nil {
				t.Error(err)
			}
			ended <- time.Since(begin)
		}
		go move(alice.Pace(false), bytes/2)
		if took := <-ended; took < 3*second/2 || took > 2*second {
			t.Errorf("half of the bytes took %v at a quarter of the rate", took)
		}
		time.Sleep(second)
		begin = time.Now()
		go move(bob.Pace(false), bytes)
		go move(bob.Pace(false), bytes)
		<-ended
		if took := <-ended; took < 3*second/2 || took > 2*second {
			t.Errorf("two transfers took %v, want about two seconds", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := alice.Pace(false).Wait(ctx, bytes/32); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the context: %v", err)
		}
	})
}

func TestWithoutLimits(t *testing.T) {
	scopes := Scopes{NewTenant("acme", Usage{})}
	for range 100 {
		_, sessions := scopes.AcquireSession()
		_, operations := scopes.AcquireOperation()
		wait, commands := scopes.Command()
		if err := errors.Join(sessions, operations, commands, scopes.Login()); err != nil || wait != 0 {
			t.Fatalf("got %v, wait %v", err, wait)
		}
	}
	if scopes.Pace(true) != nil {
		t.Error("unexpected rate")
	}
	if n := Pace(nil).Chunk(1 << 30); n != 1<<30 {
		t.Errorf("got chunk of %d bytes", n)
	}
}

// TestAcquireOperation checks that a user and a tenant leave some operations of the server to others.
func TestAcquireOperation(t *testing.T) {
	for _, test := range []struct {
		server, tenant, user int
		first, second        string // the limits that refuse alice, and then bob
	}{
		{100, 75, 57, "user.operations", "tenant.operations"}, {4, 3, 3, "tenant.operations", "tenant.operations"},
		{1, 1, 1, "server.operations", "server.operations"}, {0, 200, 200, "", ""},
	} {
		server := newScope("", serverPrefix, Bounds{Work: Work{Operations: test.server}})
		acme, alice, bob := NewTenant("acme", Usage{}), NewUser("acme", Usage{}), NewUser("acme", Usage{})
		take := func(scopes Scopes) (taken int, limit string) {
			for ; taken < 200; taken++ {
				_, err := scopes.AcquireOperation()
				if reached, ok := errors.AsType[*Error](err); ok {
					return taken, reached.Limit
				}
			}
			return taken, ""
		}
		n, limit := take(Scopes{server, acme, alice})
		if n != test.user || limit != test.first {
			t.Errorf("limit of %d operations: a user got %d, until %q", test.server, n, limit)
		}
		m, limit := take(Scopes{server, acme, bob})
		if test.server > 0 && n+m != test.tenant || limit != test.second {
			t.Errorf("limit of %d operations: the users of a tenant got %d, until %q", test.server, n+m, limit)
		}
		other := Scopes{server, NewTenant("other", Usage{}), NewUser("other", Usage{})}
		if m, _ := take(other); test.server > 1 && m != test.server-test.tenant {
			t.Errorf("limit of %d operations: another tenant got %d", test.server, m)
		}
	}
}

// TestConfigure checks that new limits take existing counts into account.
func TestConfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no time passes
		user := NewUser("acme", Usage{Sessions: 1, Transfers: 2, UploadRate: 8000})
		scopes := Scopes{user}
		release, err := scopes.AcquireSession()
		must.OK(t, err)
		if _, err := scopes.AcquireTransfer(); err != nil {
			t.Fatal(err)
		}
		before := user.rates[uploads].limiter.Load()
		user.configure(Bounds{
			Usage{Sessions: 2, Transfers: 1, UploadRate: 8000, DownloadRate: 16000}, Work{LoginRate: 1}})
		if user.rates[uploads].limiter.Load() != before || len(scopes.Pace(false)) != 1 ||
			scopes.Pace(false).Chunk(1<<20) != 2000 {
			t.Error("the rates were not configured")
		}
		if _, err := scopes.AcquireSession(); err != nil {
			t.Error(err)
		}
		if _, err := scopes.AcquireSession(); limitOf(t, err) != "acme:user.sessions" {
			t.Error("got a third session")
		}
		if _, err := scopes.AcquireTransfer(); limitOf(t, err) != "acme:user.transfers" {
			t.Error("got a second transfer")
		}
		if err := scopes.Login(); err != nil {
			t.Error(err)
		}
		if err := scopes.Login(); limitOf(t, err) != "acme:user.login_rate" {
			t.Error("got a second login within a second")
		}
		release()
		user.Configure(Usage{})
		if err := scopes.Login(); err != nil || scopes.Pace(true) != nil {
			t.Error("the limits still apply")
		}
	})
}

func TestConfigureServer(t *testing.T) {
	s := NewServer(Bounds{Usage: Usage{Sessions: 2}}, Bounds{Usage: Usage{Sessions: 2}})
	admit := admitter(t, s)
	release := admit("192.0.2.1", "")
	admit("192.0.2.1", "")
	s.Configure(Bounds{Usage: Usage{Sessions: 4}}, Bounds{Usage: Usage{Sessions: 1}})
	admit("192.0.2.1", ":address.sessions")
	admit("192.0.2.2", "")
	admit("192.0.2.2", ":address.sessions")
	release()
	admit("192.0.2.1", ":address.sessions")
	admit("192.0.2.3", "")
	admit("192.0.2.4", "")
	admit("192.0.2.5", ":server.sessions")
}

// TestConfigureSeparatesAddresses checks that addresses do not share limiters after a reload that changes the rates.
func TestConfigureSeparatesAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no time passes
		s := NewServer(Bounds{}, Bounds{Work: Work{LoginRate: 1}})
		var addresses []Scopes
		for _, addr := range []string{"192.0.2.1", "192.0.2.2"} {
			scopes, _, err := s.Admit(&Session{Addr: netip.MustParseAddr(addr)})
			must.OK(t, err)
			addresses = append(addresses, scopes)
		}
		s.Configure(Bounds{}, Bounds{Usage{UploadRate: 1, DownloadRate: 1}, Work{LoginRate: 2, CommandRate: 2}})
		for range 2 {
			for _, scopes := range addresses {
				if err := scopes.Login(); err != nil {
					t.Error("another address used up the logins of this address")
				}
			}
		}
		if err := addresses[0].Login(); limitOf(t, err) != ":address.login_rate" {
			t.Errorf("third login: %v", err)
		}
		for i, limiter := range append(addresses[0].Pace(true), addresses[0].Pace(false)...) {
			if limiter == append(addresses[1].Pace(true), addresses[1].Pace(false)...)[i] {
				t.Error("two addresses share a rate of transfers")
			}
		}
	})
}

// TestConfigureWhileSessionsAreRefused changes limits concurrently for the race detector.
func TestConfigureWhileSessionsAreRefused(t *testing.T) {
	s := NewServer(Bounds{}, Bounds{Usage: Usage{Sessions: 1}})
	session := &Session{Addr: netip.MustParseAddr("192.0.2.1")}
	_, release, err := s.Admit(session)
	must.OK(t, err)
	defer release()
	var configuring sync.WaitGroup
	configuring.Go(func() {
		for range 100 {
			s.Configure(Bounds{}, Bounds{Usage: Usage{Sessions: 1}})
		}
	})
	for range 100 {
		if _, _, err := s.Admit(session); limitOf(t, err) != ":address.sessions" {
			t.Errorf("second session: %v", err)
		}
	}
	configuring.Wait()
}
