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

// limitOf is the name of the limit that an error reports, empty for no error.
func limitOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	reached, ok := errors.AsType[*Error](err)
	if !ok || !errors.Is(err, syscall.EBUSY) {
		t.Fatalf("%v is no limit", err)
	}
	return reached.Tenant + ":" + reached.Limit
}

// The narrowest scope that is full is named, and what is refused takes no place in the others.
func TestSlots(t *testing.T) {
	tenant := NewTenant("acme", Usage{Sessions: 3, Transfers: 2})
	alice, bob := NewUser("acme", Usage{Sessions: 2, Transfers: 1}), NewUser("acme", Usage{})
	enter := func(user *Scope, want string) func() {
		t.Helper()
		leave, err := Scopes{tenant, user}.EnterTransfer()
		if got := limitOf(t, err); got != want {
			t.Errorf("limit %q, want %q", got, want)
		}
		return leave
	}
	first := enter(alice, "")
	enter(alice, "acme:user.transfers")
	second := enter(bob, "")
	enter(bob, "acme:tenant.transfers")
	first()
	second()
	enter(alice, "")()
	for _, scope := range []*Scope{tenant, alice, bob} {
		if n := scope.counts[transfers].used; n != 0 {
			t.Errorf("%d transfers after all have ended", n)
		}
	}
}

// entering lets sessions from an address into a server, where they log in, and wants a limit, or none.
func entering(t *testing.T, s *Server) func(addr, want string) (leave func()) {
	return func(addr, want string) func() {
		t.Helper()
		scopes, leave, err := s.Enter(&Session{Addr: netip.MustParseAddr(addr)})
		if got := limitOf(t, err); got != want {
			t.Errorf("%s: limit %q, want %q", addr, got, want)
		}
		if err != nil {
			return nil
		}
		loggedOut := scopes.LogIn()
		return func() { loggedOut(); leave() }
	}
}

// Half of the sessions may be not logged in. A session counts as such until it logs in, and again when it has logged
// out, also above the limit.
func TestSessionsBeforeLogin(t *testing.T) {
	s := NewServer(Bounds{Usage: Usage{Sessions: 5}}, Bounds{})
	enter := func(addr, want string) (Scopes, func()) {
		t.Helper()
		scopes, leave, err := s.Enter(&Session{Addr: netip.MustParseAddr(addr)})
		if got := limitOf(t, err); got != want {
			t.Errorf("%s: limit %q, want %q", addr, got, want)
		}
		return scopes, leave
	}
	const a, b = "192.0.2.1", "192.0.2.2"
	first, leaveFirst := enter(a, "")
	_, leaveSecond := enter(a, "")
	loggedOut := first.LogIn()
	_, leaveThird := enter(a, "")
	_, leaveFourth := enter(b, "")
	enter(b, ":sessions_before_login")
	loggedOut()
	for _, leave := range []func(){leaveFirst, leaveSecond, leaveThird, leaveFourth} {
		leave()
	}
	if s.scope.counts[beforeLogin].used != 0 || s.scope.counts[sessions].used != 0 {
		t.Errorf(
			"%d sessions before login, %d at all, after all have left", s.scope.counts[beforeLogin].used, s.scope.counts[sessions].used)
	}
}

// A rate of an address outlives its sessions, and ends with time.
func TestAddressRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Bounds{}, Bounds{Work: Work{LoginRate: 2}})
		login := func(addr netip.Addr, want string) {
			t.Helper()
			scopes, leave, err := s.Enter(&Session{Addr: addr})
			must.OK(t, err)
			defer leave()
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
			t.Errorf("%d addresses are remembered", n)
		}
	})
}

// Commands wait for their turn. Who would wait for too long is refused, and takes no turn from others.
func TestCommandRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := Scopes{newScope("acme", tenantPrefix, Bounds{Work: Work{CommandRate: 2}}), NewUser("acme", Usage{})}
		for i, want := range []time.Duration{0, 0, time.Second / 2, time.Second} {
			if wait, err := scopes.Command(); err != nil || wait != want {
				t.Errorf("command %d waits %v, want %v: %v", i, wait, want, err)
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
			t.Errorf("afterwards a command waits %v: %v", wait, err)
		}
	})
}

// Transfers share the rate of their scope, and each has its own.
func TestPace(t *testing.T) {
	const second, bytes = time.Second, 1 << 20
	synctest.Test(t, func(t *testing.T) {
		tenant := NewTenant("acme", Usage{DownloadRate: bytes})
		alice := Scopes{tenant, NewUser("acme", Usage{DownloadRate: bytes / 4})}
		bob := Scopes{tenant, NewUser("acme", Usage{})}
		if alice.Pace(true) != nil {
			t.Error("uploads have a rate")
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
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestWithoutLimits(t *testing.T) {
	scopes := Scopes{NewTenant("acme", Usage{})}
	for range 100 {
		_, sessions := scopes.EnterSession()
		_, operations := scopes.EnterOperation()
		wait, commands := scopes.Command()
		if err := errors.Join(sessions, operations, commands, scopes.Login()); err != nil || wait != 0 {
			t.Fatalf("%v, waits %v", err, wait)
		}
	}
	if scopes.Pace(true) != nil {
		t.Error("there is a rate")
	}
	if n := Pace(nil).Chunk(1 << 30); n != 1<<30 {
		t.Errorf("a chunk is %d bytes", n)
	}
}

// A user and a tenant leave operations of the server to others.
func TestSharesOfOperations(t *testing.T) {
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
				_, err := scopes.EnterOperation()
				if reached, ok := errors.AsType[*Error](err); ok {
					return taken, reached.Limit
				}
			}
			return taken, ""
		}
		n, limit := take(Scopes{server, acme, alice})
		if n != test.user || limit != test.first {
			t.Errorf("of %d operations a user gets %d, until %q", test.server, n, limit)
		}
		m, limit := take(Scopes{server, acme, bob})
		if test.server > 0 && n+m != test.tenant || limit != test.second {
			t.Errorf("of %d operations the users of a tenant get %d, until %q", test.server, n+m, limit)
		}
		other := Scopes{server, NewTenant("other", Usage{}), NewUser("other", Usage{})}
		if m, _ := take(other); test.server > 1 && m != test.server-test.tenant {
			t.Errorf("of %d operations another tenant gets %d", test.server, m)
		}
	}
}

// Other limits count for what is in use already, and for rates from then on.
func TestConfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes
		user := NewUser("acme", Usage{Sessions: 1, Transfers: 2, UploadRate: 8000})
		scopes := Scopes{user}
		leave, err := scopes.EnterSession()
		must.OK(t, err)
		if _, err := scopes.EnterTransfer(); err != nil {
			t.Fatal(err)
		}
		before := user.rates[uploads].limiter.Load()
		user.configure(Bounds{
			Usage{Sessions: 2, Transfers: 1, UploadRate: 8000, DownloadRate: 16000}, Work{LoginRate: 1}})
		if user.rates[uploads].limiter.Load() != before || len(scopes.Pace(false)) != 1 ||
			scopes.Pace(false).Chunk(1<<20) != 2000 {
			t.Error("the rates were not configured")
		}
		if _, err := scopes.EnterSession(); err != nil {
			t.Error(err)
		}
		if _, err := scopes.EnterSession(); limitOf(t, err) != "acme:user.sessions" {
			t.Error("a third session")
		}
		if _, err := scopes.EnterTransfer(); limitOf(t, err) != "acme:user.transfers" {
			t.Error("a second transfer")
		}
		if err := scopes.Login(); err != nil {
			t.Error(err)
		}
		if err := scopes.Login(); limitOf(t, err) != "acme:user.login_rate" {
			t.Error("a second login within a second")
		}
		leave()
		user.Configure(Usage{})
		if err := scopes.Login(); err != nil || scopes.Pace(true) != nil {
			t.Error("there are still limits")
		}
	})
}

func TestConfigureServer(t *testing.T) {
	s := NewServer(Bounds{Usage: Usage{Sessions: 2}}, Bounds{Usage: Usage{Sessions: 2}})
	enter := entering(t, s)
	leave := enter("192.0.2.1", "")
	enter("192.0.2.1", "")
	s.Configure(Bounds{Usage: Usage{Sessions: 4}}, Bounds{Usage: Usage{Sessions: 1}})
	enter("192.0.2.1", ":address.sessions")
	enter("192.0.2.2", "")
	enter("192.0.2.2", ":address.sessions")
	leave()
	enter("192.0.2.1", ":address.sessions")
	enter("192.0.2.3", "")
	enter("192.0.2.4", "")
	enter("192.0.2.5", ":server.sessions")
}

// Each address has limiters of its own, also after a reload that changes the rates.
func TestConfiguredRatesAreOfOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes
		s := NewServer(Bounds{}, Bounds{Work: Work{LoginRate: 1}})
		var addresses []Scopes
		for _, addr := range []string{"192.0.2.1", "192.0.2.2"} {
			scopes, _, err := s.Enter(&Session{Addr: netip.MustParseAddr(addr)})
			must.OK(t, err)
			addresses = append(addresses, scopes)
		}
		s.Configure(Bounds{}, Bounds{Usage{UploadRate: 1, DownloadRate: 1}, Work{LoginRate: 2, CommandRate: 2}})
		for range 2 {
			for _, scopes := range addresses {
				if err := scopes.Login(); err != nil {
					t.Error("another address has taken the logins of this one")
				}
			}
		}
		if err := addresses[0].Login(); limitOf(t, err) != ":address.login_rate" {
			t.Errorf("a third login: %v", err)
		}
		for i, limiter := range append(addresses[0].Pace(true), addresses[0].Pace(false)...) {
			if limiter == append(addresses[1].Pace(true), addresses[1].Pace(false)...)[i] {
				t.Error("two addresses share a rate of transfers")
			}
		}
	})
}

// Limits change while they refuse sessions; the race detector sees whether that is safe.
func TestConfigureWhileSessionsAreRefused(t *testing.T) {
	s := NewServer(Bounds{}, Bounds{Usage: Usage{Sessions: 1}})
	session := &Session{Addr: netip.MustParseAddr("192.0.2.1")}
	_, leave, err := s.Enter(session)
	must.OK(t, err)
	defer leave()
	var configuring sync.WaitGroup
	configuring.Go(func() {
		for range 100 {
			s.Configure(Bounds{}, Bounds{Usage: Usage{Sessions: 1}})
		}
	})
	for range 100 {
		if _, _, err := s.Enter(session); limitOf(t, err) != ":address.sessions" {
			t.Errorf("a second session: %v", err)
		}
	}
	configuring.Wait()
}
