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
	// fresh is how long the addresses of a peer count without another look. A pod that is replaced may get another
	// address.
	fresh = 5 * time.Second
	// lookAgain is how soon a peer is looked up again if its address does not answer, or another one asks.
	lookAgain = time.Second
	// dialTimeout is for an address that may be an old one. In it SYN is sent twice.
	dialTimeout = 3 * time.Second
)

// looks are where a peer is: as it was looked up recently, and if that is not right, as the name server says.
func looks() []func(context.Context, *netaddr.Host) []netip.Addr {
	return []func(context.Context, *netaddr.Host) []netip.Addr{
		func(ctx context.Context, p *netaddr.Host) []netip.Addr { return p.Addrs(ctx, fresh) },
		func(ctx context.Context, p *netaddr.Host) []netip.Addr { return p.Renewed(ctx, lookAgain) },
	}
}

// dial connects to a port of a peer, from an address if that is valid. It looks up the peer again if no address
// answers.
func dial(
	ctx context.Context, p *netaddr.Host, dialer net.Dialer, from netip.Addr, port uint16,
) (conn net.Conn, err error) {
	err = &net.DNSError{Err: "no address", Name: p.Name()}
	var tried []netip.Addr
	for n, look := range looks() {
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

// peers are all replicas but this one, by their numbers.
type peers map[int]*netaddr.Host

// known says whether an address was a peer's when that was looked up last.
func (p peers) known(addr netip.Addr) bool {
	for _, peer := range p {
		if slices.Contains(peer.Known(), addr) {
			return true
		}
	}
	return false
}

// lookAgain looks up all whose addresses are not fresh, and does not wait. A client may have the former address of a
// peer. It is refused once, and known as a stranger when it comes again. A wait here would make the header of a relay
// seem to come later.
func (p peers) lookAgain(ctx context.Context) {
	for _, peer := range p {
		peer.Look(ctx, fresh)
	}
}

// confirm says whether an address is a peer's now. It may look up all.
func (p peers) confirm(ctx context.Context, addr netip.Addr) bool {
	for _, look := range looks() {
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
