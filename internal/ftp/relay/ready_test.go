package relay

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/base/netaddr"
)

// A replaced pod is ready when the name server returns its new address and the peers accept its relays.
func TestAwaitPeers(t *testing.T) {
	before, after := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")
	for name, tc := range map[string]struct {
		peer     string
		cache    time.Duration // how long the name server caches the old address
		refusing time.Duration // how long the name server of a peer caches the old address
		stop     time.Duration
		want     time.Duration
	}{
		"known":        {"babelftp-1", 0, 0, time.Hour, 0},
		"old-address":  {"babelftp-1", 30 * time.Second, 0, time.Hour, 30 * time.Second},
		"refused":      {"babelftp-1", 10 * time.Second, 40 * time.Second, time.Hour, 40 * time.Second},
		"never":        {"babelftp-1", time.Hour, 0, time.Hour, readyTimeout},
		"refused-ever": {"babelftp-1", 0, time.Hour, time.Hour, readyTimeout},
		"stopped":      {"babelftp-1", time.Hour, 0, 9500 * time.Millisecond, 9500 * time.Millisecond},
		"address":      {"10.0.0.9", time.Hour, time.Hour, time.Hour, 0},
		"ipv6-address": {"fd00::9", time.Hour, time.Hour, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.stop)
				defer cancel()
				c := &Cluster{Options: Options{Log: slog.New(slog.DiscardHandler)}}
				began := time.Now()
				find := func(context.Context, string) ([]netip.Addr, error) {
					if time.Since(began) < tc.cache {
						return []netip.Addr{before}, nil
					}
					return []netip.Addr{after}, nil
				}
				refusing := func(context.Context) []string {
					if time.Since(began) < tc.refusing {
						return []string{"babelftp-0"}
					}
					return nil
				}
				c.awaitPeers(ctx, netaddr.NewHost(tc.peer, find), func(addr netip.Addr) bool {
					return addr == after
				}, refusing)
				if took := time.Since(began); took != tc.want {
					t.Errorf("it took %v, want %v", took, tc.want)
				}
			})
		})
	}
}

// A probe shows whether a peer accepts relays from an address. A peer that is not running does not refuse.
func TestRefusing(t *testing.T) {
	ports := freePorts(t, len(replicas()))
	ask := func(address string, want ...string) {
		t.Helper()
		c := New(
			t.Context(), Options{Replica: 2, Peers: replicas(), Ports: ports, Address: netip.MustParseAddr(address)})
		c.within = stall
		if got := c.refusingPeers(t.Context()); !slices.Equal(got, want) {
			t.Errorf("got %v that refuse relays from %s, want %v", got, address, want)
		}
	}
	const stranger = "127.0.0.5"
	ask(stranger)
	startReplica(t, 0, ports, takeTimeout, stall)
	ask(stranger, replicas()[0])
	startReplica(t, 1, ports, takeTimeout, stall)
	ask(stranger, replicas()[:2]...)
	ask(trusted, replicas()[:2]...) // a load balancer is not a replica
	ask(replicas()[2])
}

// The address of a replica is an address that its ports listen on.
func TestLocal(t *testing.T) {
	for _, tc := range []struct {
		listen, addr string
		want         bool
	}{
		{"", "127.0.0.3", true},
		{"0.0.0.0", "127.0.0.3", true},
		{"", "192.0.2.1", false}, // documentation address (RFC 5737), not of this machine
		{"127.0.0.2", "127.0.0.2", true},
		{"127.0.0.2", "127.0.0.3", false},
	} {
		var listen netip.Addr
		if tc.listen != "" {
			listen = netip.MustParseAddr(tc.listen)
		}
		c := &Cluster{Options: Options{Address: listen}}
		if got := c.local(netip.MustParseAddr(tc.addr)); got != tc.want {
			t.Errorf("listening on %q: local(%s) = %v, want %v", tc.listen, tc.addr, got, tc.want)
		}
	}
}
