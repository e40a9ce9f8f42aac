package limits

import (
	"net/netip"
	"testing"
)

func TestSessions(t *testing.T) {
	s := NewSessions[string](Max{"all", 3}, Max{"each", 2})
	enter := func(key, want string) func() {
		t.Helper()
		leave, limit := s.Enter(key)
		if limit != want || (leave == nil) != (want != "") {
			t.Errorf("%s: limit %q, want %q", key, limit, want)
		}
		return leave
	}
	first := enter("a", "")
	second := enter("a", "")
	enter("a", "each")
	third := enter("b", "")
	enter("b", "all")
	enter("a", "each")
	first()
	enter("a", "")()
	second()
	third()
	if s.open != 0 || len(s.byKey) != 0 {
		t.Errorf("%d sessions, by key %v, after all have left", s.open, s.byKey)
	}
}

func TestSessionsWithoutLimits(t *testing.T) {
	s := NewSessions[string](Max{}, Max{})
	for range 100 {
		if _, limit := s.Enter("a"); limit != "" {
			t.Fatalf("limit %q", limit)
		}
	}
}

func TestNetwork(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1":            "192.0.2.1/32",
		"::ffff:192.0.2.1":     "192.0.2.1/32",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"fe80::1%eth0":         "fe80::/64",
		"::1":                  "::/64",
	} {
		if got := Network(netip.MustParseAddr(addr)).String(); got != want {
			t.Errorf("%s counts as %s, want %s", addr, got, want)
		}
	}
	if got := Network(netip.Addr{}); got != (netip.Prefix{}) {
		t.Errorf("no address counts as %s", got)
	}
}
