package bans

import (
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/config/limit"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/limits"
)

func network(t *testing.T, text string) value.Network {
	t.Helper()
	var n value.Network
	if err := n.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return n
}

// refusedBy is the limit that an error names.
func refusedBy(err error) string {
	if reached, ok := errors.AsType[*limits.Error](err); ok {
		return reached.Limit
	}
	return ""
}

func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := limit.Bans{AddressScore: 3, UserScore: 2, Time: time.Hour, HalfLife: time.Minute}
		networks := limit.Networks{
			Allow: []value.Network{network(t, "10.0.0.0/8"), network(t, "198.51.100.7")},
			Deny:  []value.Network{network(t, "198.51.100.0/24"), network(t, "2001:db8:bad::/48")},
		}
		kinds := map[string]int{}
		l := New(cfg, networks, slog.New(slog.DiscardHandler), func(kind string) { kinds[kind]++ })
		want := func(addr, refused string) {
			t.Helper()
			if got := refusedBy(l.Check(netip.MustParseAddr(addr))); got != refused {
				t.Errorf("%s is refused by %q, want %q", addr, got, refused)
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
		time.Sleep(10 * time.Minute) // which forgets them
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
		if got := refusedBy(l.CheckUser("alice@acme")); got != "bans" {
			t.Errorf("a user is refused by %q", got)
		}
		if err := l.CheckUser("a@acme"); err != nil {
			t.Error(err)
		}

		for range 29 {
			l.Offended(netip.MustParseAddr("203.0.113.9"))
		}
		want("203.0.113.9", "")
		l.Offended(netip.MustParseAddr("203.0.113.9"))
		want("203.0.113.9", "bans")

		if !l.Remove("203.0.113.7") || l.Remove("203.0.113.7") {
			t.Error("a ban ends other than once")
		}
		want("203.0.113.7", "")
		l.Add("203.0.113.7", 0)
		l.Add("203.0.113.7", time.Minute)
		names := ""
		for _, b := range l.All() {
			names += b.Name + " "
		}
		if want := "2001:db8::/64 203.0.113.7 203.0.113.9 alice@acme "; names != want {
			t.Errorf("bans are %s, want %s", names, want)
		}
		time.Sleep(time.Minute)
		want("203.0.113.7", "")
		time.Sleep(time.Hour)
		want("2001:db8::4", "")
		if all := l.All(); len(all) != 0 {
			t.Errorf("bans that are over: %v", all)
		}
		if kinds["address"] != 5 || kinds["user"] < 1 {
			t.Errorf("bans counted: %v", kinds)
		}
	})
}

// Without scores there are no bans, and the memory of failures ends with them.
func TestListForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addr := netip.MustParseAddr("203.0.113.0")
		none := New(limit.Bans{}, limit.Networks{}, slog.New(slog.DiscardHandler), nil)
		l := New(limit.Bans{AddressScore: 2, Time: time.Hour, HalfLife: time.Minute}, limit.Networks{}, slog.New(slog.DiscardHandler), nil)
		for range sweepAt {
			none.LoginFailed(addr, "a@acme")
			l.LoginFailed(addr, "a@acme")
			addr = addr.Next()
		}
		time.Sleep(time.Hour)
		l.LoginFailed(addr, "a@acme")
		if len(none.scores) != 0 || len(l.scores) != 1 {
			t.Errorf("%d and %d scores, want 0 and 1", len(none.scores), len(l.scores))
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
		"203.0.113.0/24":    "",
		"2001:db8::/32":     "",
		"alice":             "",
		"@acme":             "",
		"alice@":            "",
		"":                  "",
	} {
		got, err := Parse(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, want %q: %v", text, got, want, err)
		}
	}
}
