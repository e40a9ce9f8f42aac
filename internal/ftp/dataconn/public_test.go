package dataconn

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/base/netaddr"
)

// A client gets the IPv4 address configured for the smallest network that contains it.
func TestPublic(t *testing.T) {
	find := func(_ context.Context, name string) ([]netip.Addr, error) {
		return map[string][]netip.Addr{
			"outside": {netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("203.0.113.7"),
				netip.MustParseAddr("203.0.113.8")},
			"inside": {netip.MustParseAddr("10.0.0.7")},
			"near":   {netip.MustParseAddr("10.0.1.7")},
			"ipv6":   {netip.MustParseAddr("2001:db8::1")},
		}[name], nil
	}
	host := func(name string) *netaddr.Host { return netaddr.NewHost(name, find) }
	p := Public{Host: host("outside"), Networks: map[netip.Prefix]*netaddr.Host{
		netip.MustParsePrefix("10.0.0.0/8"): host("inside"), netip.MustParsePrefix("10.1.0.0/16"): host("near"),
		netip.MustParsePrefix("fe80::/10"): host("inside"), netip.MustParsePrefix("192.0.2.0/24"): host("ipv6"),
	}}
	for client, want := range map[string]string{
		"198.51.100.7": "203.0.113.7", "10.2.0.1": "10.0.0.7", "10.1.0.1": "10.0.1.7", "2001:db8::9": "203.0.113.7",
		"fe80::1%eth0": "10.0.0.7",
	} {
		if got, err := p.For(t.Context(), netip.MustParseAddr(client)); err != nil || got.String() != want {
			t.Errorf("%s: got %v, %v, want %s", client, got, err, want)
		}
	}
	if got, err := p.For(t.Context(), netip.MustParseAddr("192.0.2.1")); err == nil ||
		!strings.Contains(err.Error(), `"ipv6"`) {
		t.Errorf("host without IPv4: got %v, %v", got, err)
	}
	if got, err := (Public{}).For(t.Context(), netip.MustParseAddr("192.0.2.1")); err != nil || got.IsValid() {
		t.Errorf("without an address: %v, %v", got, err)
	}
}
