package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// names is a name server that tests can change.
type names struct {
	byHost  map[string][]netip.Addr
	err     error
	lookups int
}

func (n *names) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	n.lookups++
	if n.err != nil {
		return nil, n.err
	}
	if addrs := n.byHost[host]; addrs != nil {
		return slices.Clone(addrs), nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// A pod that has moved is found within seconds, and its old address is no longer trusted. An error of the name
// server changes nothing.
func TestPeerMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")
		server := &names{byHost: map[string][]netip.Addr{"babelftp-1": {netip.MustParseAddr("::ffff:10.0.0.7")}}}
		p := peers{1: netaddr.NewHost("babelftp-1", server.lookup)}
		want := func(addr netip.Addr, want bool) {
			t.Helper()
			if got := p.confirm(t.Context(), addr); got != want {
				t.Errorf("%v is a peer: got %v, want %v", addr, got, want)
			}
		}
		if p.known(before) {
			t.Error("an address is known before the first lookup")
		}
		want(before, true)
		if !p.known(before) {
			t.Error("the address is not known after a lookup")
		}
		server.byHost["babelftp-1"] = []netip.Addr{after}
		want(before, true) // cached
		time.Sleep(lookupInterval)
		want(after, true) // an unknown address causes a lookup
		want(before, false)
		time.Sleep(lookupTTL)
		server.err = errors.New("the name server does not reply")
		want(after, true)
		time.Sleep(lookupTTL)
		server.err, server.byHost = nil, nil
		want(after, false)
	})
}

// A connection from the former address of a peer causes a lookup, so that the next connection from there is
// treated as a client.
func TestFormerAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		former := netip.MustParseAddr("10.0.0.7")
		server := &names{byHost: map[string][]netip.Addr{"babelftp-1": {former}}}
		log := slog.New(slog.DiscardHandler)
		c := New(
			t.Context(), Options{Peers: []string{"own"}, Trust: NewTrust(nil, func() {}, nil, log),
				Observe: newEvents(), Log: log})
		defer c.Shutdown(t.Context())
		c.peers = peers{1: netaddr.NewHost("babelftp-1", server.lookup)}
		if !c.peers.confirm(t.Context(), former) {
			t.Fatal("the peer is not known")
		}
		server.byHost["babelftp-1"] = []netip.Addr{netip.MustParseAddr("10.0.0.8")}
		time.Sleep(2 * lookupTTL)
		matched := 0
		for range 2 {
			client, conn := net.Pipe()
			c.Receive(
				addressed{conn, net.TCPAddrFromAddrPort(netip.AddrPortFrom(former, 40000))}, time.Now(),
				func(net.Conn, time.Time) bool {
					matched++
					return true
				})
			_ = client.Close()
		}
		if matched != 1 {
			t.Errorf("got %d of two connections matched, want only the second", matched)
		}
	})
}

// Connections from unknown addresses cause one lookup per second at most.
func TestLookupsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &names{byHost: map[string][]netip.Addr{"babelftp-1": {netip.MustParseAddr("10.0.0.7")}}}
		p := peers{1: netaddr.NewHost("babelftp-1", server.lookup)}
		for range 100 {
			for range 10 {
				p.confirm(t.Context(), netip.MustParseAddr("203.0.113.7"))
			}
			time.Sleep(100 * time.Millisecond)
		}
		if server.lookups > 11 {
			t.Errorf("got %d lookups in 10 seconds", server.lookups)
		}
	})
}

// A relay connects to the address of the peer that responds, from the address of the replica.
func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.3:0")
	must.OK(t, err)
	defer l.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	away, answers := netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")
	from := netip.MustParseAddr("127.0.0.4")
	for name, tc := range map[string]struct {
		addrs []netip.Addr
		from  netip.Addr
		ok    bool
	}{
		"away":         {[]netip.Addr{away}, from, false},
		"second":       {[]netip.Addr{away, netip.IPv6Loopback(), answers}, from, true},
		"other-family": {[]netip.Addr{answers}, netip.IPv6Loopback(), false},
		"from-any":     {[]netip.Addr{answers}, netip.Addr{}, true},
		"no-address":   {nil, from, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := &names{byHost: map[string][]netip.Addr{"babelftp-1": tc.addrs}}
			conn, err := dial(t.Context(), netaddr.NewHost("babelftp-1", server.lookup), net.Dialer{}, tc.from, port)
			if (err == nil) != tc.ok {
				t.Fatalf("unexpected error: %v", err)
			}
			if err != nil {
				return
			}
			defer conn.Close()
			if got := conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr(); tc.from.IsValid() && got != tc.from {
				t.Errorf("got relay from %v, want %v", got, tc.from)
			}
		})
	}
}

// addressed is a connection from an address.
type addressed struct {
	net.Conn
	from net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.from }

// The arrival time of a client does not include the time for a lookup of the peer or for the header.
func TestArrivalBeforeALookup(t *testing.T) {
	for name, tc := range map[string]struct{ age, headerAfter, wantBefore time.Duration }{
		"old-connection": {age: time.Second, wantBefore: time.Second},
		"late-header":    {age: time.Second, headerAfter: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peer := netip.MustParseAddr("10.0.0.2")
				host := netaddr.NewHost("peer", func(context.Context, string) ([]netip.Addr, error) {
					time.Sleep(3 * time.Second)
					return []netip.Addr{peer}, nil
				})
				log := slog.New(slog.DiscardHandler)
				c := New(
					t.Context(), Options{Peers: []string{"own"}, Trust: NewTrust(nil, func() {}, nil, log),
						Observe: newEvents(), Log: log})
				defer c.Shutdown(t.Context())
				c.peers = peers{1: host}
				host.Addrs(t.Context(), 0)
				time.Sleep(2 * lookupTTL)

				relayed, conn := net.Pipe()
				begin := time.Now()
				go func() {
					value := binary.BigEndian.AppendUint64([]byte{relayVersion}, uint64(tc.age))
					h, err := relayHeader(
						&net.TCPAddr{IP: net.IPv4(203, 0, 113, 7)}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)},
						value)
					if err != nil {
						t.Error(err)
					}
					time.Sleep(tc.headerAfter)
					_, _ = relayed.Write(h)
					_, _ = io.Copy(io.Discard, relayed)
				}()
				var got time.Time
				c.Receive(
					addressed{conn, net.TCPAddrFromAddrPort(netip.AddrPortFrom(peer, 40000))}, begin,
					func(_ net.Conn, arrived time.Time) bool {
						got = arrived
						return false
					})
				if want := begin.Add(-tc.wantBefore); !got.Equal(want) {
					t.Errorf("got client at %v, want %v", got, want)
				}
				<-host.Refresh(t.Context(), 0) // the lookup of the test is still running
			})
		})
	}
}
