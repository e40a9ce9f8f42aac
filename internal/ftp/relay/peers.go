package relay

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/base/netaddr"
)

const (
	// lookupTTL limits how long the resolved addresses of a peer are used. A replaced pod may get another address.
	lookupTTL = 5 * time.Second
	// lookupInterval is the minimum time between two lookups of a peer that does not respond or has an unknown
	// address.
	lookupInterval = time.Second
	// dialTimeout bounds a connection to an address that may be outdated. It is long enough for two SYNs.
	dialTimeout = 3 * time.Second
)

// lookups returns two ways to resolve a peer: from the cache, and with a new lookup if the cached address is
// wrong.
func lookups() []func(context.Context, *netaddr.Host) []netip.Addr {
	return []func(context.Context, *netaddr.Host) []netip.Addr{
		func(ctx context.Context, p *netaddr.Host) []netip.Addr { return p.Addrs(ctx, lookupTTL) },
		func(ctx context.Context, p *netaddr.Host) []netip.Addr { return p.FreshAddrs(ctx, lookupInterval) },
	}
}

// dial connects to a port of a peer, from the address from if it is valid. If no address responds, it looks up the
// peer again.
func dial(
	ctx context.Context, p *netaddr.Host, dialer net.Dialer, from netip.Addr, port uint16,
) (conn net.Conn, err error) {
	err = &net.DNSError{Err: "no address", Name: p.Name()}
	var tried []netip.Addr
	for n, look := range lookups() {
		if dialer.Timeout = dialTimeout; n > 0 {
			dialer.Timeout = 0
		}
		for _, addr := range look(ctx, p) {
			if slices.Contains(tried, addr) || from.IsValid() && from.Is4() != addr.Is4() {
				continue
			}
			tried = append(tried, addr)
			if from.IsValid() {
				dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
			}
			conn, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(addr.String(), strconv.Itoa(int(port))))
			if err == nil {
				return conn, nil
			}
		}
	}
	return nil, err
}

// peers holds the other replicas by number.
type peers map[int]*netaddr.Host

// known reports whether an address belonged to a peer at the last lookup.
func (p peers) known(addr netip.Addr) bool {
	for _, peer := range p {
		if slices.Contains(peer.Cached(), addr) {
			return true
		}
	}
	return false
}

// refresh starts a lookup of each peer whose addresses are outdated, but does not wait. A client that now has the
// former address of a peer is refused once, and accepted when it connects again. Waiting here would distort the
// arrival time of a relay.
func (p peers) refresh(ctx context.Context) {
	for _, peer := range p {
		peer.Refresh(ctx, lookupTTL)
	}
}

// confirm reports whether an address belongs to a peer now. It may look up all peers.
func (p peers) confirm(ctx context.Context, addr netip.Addr) bool {
	for _, look := range lookups() {
		var found atomic.Bool
		var looking sync.WaitGroup
		for _, peer := range p {
			looking.Go(func() {
				if slices.Contains(look(ctx, peer), addr) {
					found.Store(true)
				}
			})
		}
		looking.Wait()
		if found.Load() {
			return true
		}
	}
	return false
}
