package bans

import (
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

func network(t *testing.T, text string) value.Network {
	t.Helper()
	var n value.Network
	must.OK(t, n.UnmarshalText([]byte(text)))
	return n
}

// refusedBy returns the limit in an error.
func refusedBy(err error) string {
	if reached, ok := errors.AsType[*limits.Error](err); ok {
		return reached.Limit
	}
	return ""
}

func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config.Bans{AddressScore: 3, UserScore: 2, Time: time.Hour, HalfLife: time.Minute}
		networks := config.Networks{
			Allow: []value.Network{network(t, "10.0.0.0/8"), network(t, "198.51.100.7")},
			Deny:  []value.Network{network(t, "198.51.100.0/24"), network(t, "2001:db8:bad::/48")},
		}
		kinds := map[string]int{}
		l := New(cfg, networks, slog.New(slog.DiscardHandler), func(b Ban) { kinds[b.Kind()]++ })
		want := func(addr, refused string) {
			t.Helper()
			if got := refusedBy(l.Check(netip.MustParseAddr(addr), "")); got != refused {
				t.Errorf("%s: refused by %q, want %q", addr, got, refused)
			}
		}
		fail := func(addr, user string, times int) {
			for range times {
				l.LoginFailed(netip.MustParseAddr(addr), user)
			}
		}
		want("198.51.100.8", "deny")
		want("::ffff:198.51.100.8", "deny")
		want("198.51.100.7", "")
		want("2001:db8:bad::1%eth0", "deny")

		fail("203.0.113.7", "a@acme", 1)
		fail("203.0.113.7", "b@acme", 1)
		time.Sleep(10 * time.Minute) // resets the scores
		fail("203.0.113.7", "c@acme", 1)
		fail("203.0.113.7", "d@acme", 1)
		want("203.0.113.7", "")
		fail("203.0.113.7", "e@acme", 1)
		want("203.0.113.7", "bans")
		want("::ffff:203.0.113.7", "bans")
		want("203.0.113.8", "")

		fail("2001:db8::1", "f@acme", 1)
		fail("2001:db8::2", "g@acme", 1)
		fail("2001:db8::3", "h@acme", 1)
		want("2001:db8::4", "bans")

		fail("10.1.2.3", "alice@acme", 100) // a load balancer
		want("10.1.2.3", "")
		if got := refusedBy(l.Check(netip.Addr{}, "alice@acme")); got != "bans" {
			t.Errorf("user refused by %q", got)
		}
		if err := l.Check(netip.Addr{}, "a@acme"); err != nil {
			t.Error(err)
		}

		for range 29 {
			l.Offended(netip.MustParseAddr("203.0.113.9"))
		}
		want("203.0.113.9", "")
		l.Offended(netip.MustParseAddr("203.0.113.9"))
		want("203.0.113.9", "bans")

		if !l.Remove("203.0.113.7") || l.Remove("203.0.113.7") {
			t.Error("the end of a ban was not reported exactly once")
		}
		want("203.0.113.7", "")
		l.Add("203.0.113.7", 0)
		l.Add("203.0.113.7", time.Minute)
		names := ""
		for _, b := range l.All() {
			names += b.Name + " "
		}
		if want := "2001:db8::/64 203.0.113.7 203.0.113.9 alice@acme "; names != want {
			t.Errorf("got bans %s, want %s", names, want)
		}
		time.Sleep(time.Minute)
		want("203.0.113.7", "")
		time.Sleep(time.Hour)
		want("2001:db8::4", "")
		if all := l.All(); len(all) != 0 {
			t.Errorf("unexpected expired bans: %v", all)
		}
		if kinds["address"] != 5 || kinds["user"] < 1 {
			t.Errorf("unexpected counts of bans: %v", kinds)
		}
	})
}

// Without scores no bans are added, and old scores are removed.
func TestListForgets(t *testing.T) {
	const many = 1000 // the size at which a list starts to remove old scores
	synctest.Test(t, func(t *testing.T) {
		addr := netip.MustParseAddr("203.0.113.0")
		none := New(config.Bans{}, config.Networks{}, slog.New(slog.DiscardHandler), nil)
		l := New(
			config.Bans{AddressScore: 2, Time: time.Hour, HalfLife: time.Minute}, config.Networks{},
			slog.New(slog.DiscardHandler), nil)
		for range many {
			none.LoginFailed(addr, "a@acme")
			l.LoginFailed(addr, "a@acme")
			addr = addr.Next()
		}
		time.Sleep(time.Hour)
		l.LoginFailed(addr, "a@acme")
		if none.scores.Len() != 0 || l.scores.Len() != 1 {
			t.Errorf("got %d and %d scores, want 0 and 1", none.scores.Len(), l.scores.Len())
		}
	})
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"203.0.113.7":       "203.0.113.7",
		"203.0.113.7/32":    "203.0.113.7",
		"2001:db8::1":       "2001:db8::/64",
		"2001:db8::/64":     "2001:db8::/64",
		"alice@acme":        "alice@acme",
		"a@example.com@bcd": "a@example.com@bcd",
		"203.0.113.0/24":    "203.0.113.0/24",
		"2001:db8::/32":     "2001:db8::/32",
		"2001:db8::1/128":   "2001:db8::/64",
		"203.0.113.7/24":    "",
		"::ffff:0:0/96":     "",
		"203.0.113.0/33":    "",
		"alice":             "",
		"@acme":             "",
		"alice@":            "",
		"":                  "",
	} {
		got, err := Parse(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("Parse(%q) = %q, want %q: %v", text, got, want, err)
		}
	}
}

// A ban because of failures ends the sessions of the address that are not logged in. A ban by an administrator ends
// all sessions of the address, network or user.
func TestBansCutSessions(t *testing.T) {
	const anonymous = ""
	type at struct{ addr, user string }
	for _, tc := range []struct {
		name string
		ban  func(l *List)
		cut  []at
	}{
		{"failures-of-an-address", func(l *List) {
			l.LoginFailed(netip.MustParseAddr("203.0.113.7"), "bob@acme")
		}, []at{{"203.0.113.7", anonymous}}},
		{"failures-of-a-user", func(l *List) { l.LoginFailed(netip.MustParseAddr("10.0.0.1"), "alice@acme") }, nil},
		{"address", func(l *List) {
			l.Add("203.0.113.7", 0)
		}, []at{{"203.0.113.7", anonymous}, {"203.0.113.7", "alice@acme"}}},
		{"network", func(l *List) {
			l.Add("203.0.113.0/24", 0)
		}, []at{{"203.0.113.7", anonymous}, {"203.0.113.7", "alice@acme"}, {"203.0.113.9", "alice@acme"}}},
		{"network-of-ipv6", func(l *List) { l.Add("2001:db8::/32", 0) }, []at{{"2001:db8::1", "bob@acme"}}},
		{"user", func(l *List) {
			l.Add("alice@acme", 0)
		}, []at{{"203.0.113.7", "alice@acme"}, {"203.0.113.9", "alice@acme"}, {"10.0.0.1", "alice@acme"}}},
		{"address-that-is-allowed", func(l *List) { l.Add("10.0.0.1", 0) }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			networks := config.Networks{Allow: []value.Network{network(t, "10.0.0.0/8")}}
			l := New(
				config.Bans{AddressScore: 1, UserScore: 1, Time: time.Hour, HalfLife: time.Minute}, networks,
				slog.New(slog.DiscardHandler), func(Ban) {})
			cut := map[at]bool{}
			var leaves []func()
			for _, open := range []at{
				{"203.0.113.7", anonymous}, {"203.0.113.7", "alice@acme"}, {"203.0.113.9", "alice@acme"},
				{"10.0.0.1", anonymous}, {"10.0.0.1", "alice@acme"}, {"2001:db8::1", "bob@acme"},
			} {
				s := &limits.Session{Addr: netip.MustParseAddr(open.addr), Cut: func(err error) {
					if got := refusedBy(err); got != limits.Bans {
						t.Errorf("session %v was cut by %q", open, got)
					}
					cut[open] = true
				}}
				leave, err := l.Admit(s)
				must.OK(t, err)
				if open.user != anonymous {
					loggedOut, err := l.LogIn(s, open.user)
					must.OK(t, err)
					leaves = append(leaves, loggedOut)
				}
				leaves = append(leaves, leave)
			}
			tc.ban(l)
			for _, want := range tc.cut {
				if !cut[want] {
					t.Errorf("session %v was not cut", want)
				}
			}
			if len(cut) != len(tc.cut) {
				t.Errorf("got cut sessions %v, want %v", cut, tc.cut)
			}
			for _, leave := range leaves {
				leave()
			}
			if len(l.sessions) != 0 {
				t.Errorf("got %d sessions after all ended", len(l.sessions))
			}
		})
	}
}

// A ban that is added while the server checks a password refuses the login. A ban of a network refuses its addresses
// until it ends.
func TestBanDuringLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(config.Bans{Time: time.Hour}, config.Networks{}, slog.New(slog.DiscardHandler), func(Ban) {})
		s := &limits.Session{Addr: netip.MustParseAddr("203.0.113.7"), Cut: func(error) {}}
		leave, err := l.Admit(s)
		must.OK(t, err)
		l.Add("alice@acme", 0)
		if _, err := l.LogIn(s, "alice@acme"); refusedBy(err) != limits.Bans {
			t.Errorf("login of a banned user: %v", err)
		}
		leave()
		l.Add("203.0.113.0/24", time.Minute)
		if _, err := l.Admit(s); refusedBy(err) != limits.Bans {
			t.Errorf("admitted an address of a banned network: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := l.Admit(s); err != nil {
			t.Error(err)
		}
	})
}

// The name of an unknown user may be a password, so hashes of two lists must not be comparable.
func TestUnknownUser(t *testing.T) {
	a := New(config.Bans{}, config.Networks{}, slog.New(slog.DiscardHandler), nil)
	b := New(config.Bans{}, config.Networks{}, slog.New(slog.DiscardHandler), nil)
	name := a.UnknownUser("hunter2")
	if name != a.UnknownUser("hunter2") || name == a.UnknownUser("hunter3") {
		t.Error("failures of one name are not added up, or failures of different names are")
	}
	if name == b.UnknownUser("hunter2") {
		t.Error("another list has the same key")
	}
}

// The end of a ban has a monotonic clock reading, so that setting the clock neither ends nor extends bans.
func TestBansAreMonotonic(t *testing.T) {
	l := New(
		config.Bans{AddressScore: 1, Time: time.Hour, HalfLife: time.Hour}, config.Networks{},
		slog.New(slog.DiscardHandler), func(Ban) {})
	l.Add("192.0.2.1", time.Minute)
	l.LoginFailed(netip.MustParseAddr("192.0.2.2"), "")
	for _, b := range l.All() {
		if !strings.Contains(b.Until.String(), " m=") {
			t.Errorf("%v has no monotonic reading", b)
		}
	}
}
