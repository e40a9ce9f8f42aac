package cluster

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/lookup"
)

// A pod that replaces another one is ready when the name server has its address, and the peers can have looked again.
func TestAwaitName(t *testing.T) {
	before, after := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")
	for name, tc := range map[string]struct {
		peer  string
		cache time.Duration // how long the name server keeps the old address
		stop  time.Duration
		want  time.Duration
	}{
		"known":        {"babelftp-1", 0, time.Hour, lookAgain},
		"old-address":  {"babelftp-1", 30 * time.Second, time.Hour, 30*time.Second + lookAgain},
		"never":        {"babelftp-1", time.Hour, time.Hour, nameTimeout},
		"stopped":      {"babelftp-1", time.Hour, 9500 * time.Millisecond, 9500 * time.Millisecond},
		"address":      {"10.0.0.9", time.Hour, time.Hour, 0},
		"ipv6-address": {"fd00::9", time.Hour, time.Hour, 0},
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
				c.awaitName(ctx, lookup.NewHost(tc.peer, find), func(addr netip.Addr) bool { return addr == after })
				if took := time.Since(began); took != tc.want {
					t.Errorf("it took %v, want %v", took, tc.want)
				}
			})
		})
	}
}

// The address of a replica is one that its ports listen on.
func TestLocal(t *testing.T) {
	for _, tc := range []struct {
		listen, addr string
		want         bool
	}{
		{"", "127.0.0.3", true},
		{"0.0.0.0", "127.0.0.3", true},
		{"", "192.0.2.1", false}, // RFC 5737: of no machine
		{"127.0.0.2", "127.0.0.2", true},
		{"127.0.0.2", "127.0.0.3", false},
	} {
		var listen netip.Addr
		if tc.listen != "" {
			listen = netip.MustParseAddr(tc.listen)
		}
		c := &Cluster{Options: Options{Address: listen}}
		if got := c.local(netip.MustParseAddr(tc.addr)); got != tc.want {
			t.Errorf("listening on %q: %s is an address of the replica: %v, want %v", tc.listen, tc.addr, got, tc.want)
		}
	}
}
