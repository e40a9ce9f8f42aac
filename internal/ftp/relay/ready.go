package relay

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/babelftp/babelftp/internal/base/netaddr"
)

// readyTimeout is longer than a name server of Kubernetes caches the address of the previous pod, which is 30
// seconds.
const readyTimeout = time.Minute

// AwaitPeers waits until the other replicas accept relays from this replica. For that, the name servers must
// return its address, and each running peer must have looked it up. Peers may use other name servers, and each may
// cache an old address. AwaitPeers waits for at most a minute, because the replica can work without relays. It
// returns early when ctx ends.
func (c *Cluster) AwaitPeers(ctx context.Context) {
	c.awaitPeers(ctx, netaddr.NewHost(c.Peers[c.Replica], netaddr.SystemLookup), c.local, c.refusingPeers)
}

func (c *Cluster) awaitPeers(
	ctx context.Context, self *netaddr.Host, local func(netip.Addr) bool, refusing func(context.Context) []string,
) {
	if _, err := netip.ParseAddr(self.Name()); err == nil {
		return
	}
	for began := time.Now(); ; {
		found := slices.ContainsFunc(self.FreshAddrs(ctx, lookupInterval), local)
		var refused []string
		if found {
			refused = refusing(ctx)
		}
		switch {
		case ctx.Err() != nil || found && len(refused) == 0:
			return
		case time.Since(began) < readyTimeout:
		case found:
			c.Log.Warn(
				"other replicas refuse relays from this replica; check that their name servers return its address, "+
					"and check cluster.peers",
				"name", self.Name(), "addresses", self.Cached(), "peers", refused)
			return
		default:
			c.Log.Warn(
				"the name of this replica does not resolve to its address, so other replicas refuse its relays; "+
					"check cluster.peers",
				"name", self.Name(), "addresses", self.Cached())
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookupInterval):
		}
	}
}

// refusingPeers returns the names of running peers that refuse relays from this replica.
func (c *Cluster) refusingPeers(ctx context.Context) []string {
	var names []string
	for n, host := range c.Peers {
		if n != c.Replica && c.refusedBy(ctx, n) {
			names = append(names, host)
		}
	}
	return names
}

// refusedBy reports whether a peer is running and refuses relays from this replica.
func (c *Cluster) refusedBy(ctx context.Context, peer int) bool {
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := c.dialOwner(dialing, Slice(c.Ports, peer, len(c.Peers)).First)
	if err != nil {
		return false // a peer looks this replica up when it starts
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	header, err := relayHeader(conn.LocalAddr(), conn.RemoteAddr(), probeValue())
	return err != nil || (&relay{owner: conn}).offer(header, c.within) != nil
}

// local reports whether relays of this replica may come from an address: it must be an address of this machine,
// and equal to Address if that is set.
func (c *Cluster) local(addr netip.Addr) bool {
	if c.Address.IsValid() && !c.Address.IsUnspecified() {
		return addr == c.Address
	}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
