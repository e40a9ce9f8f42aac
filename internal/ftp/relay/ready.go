package relay

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/babelftp/babelftp/internal/base/netaddr"
)

// readyTimeout is longer than a name server of Kubernetes keeps the address of the pod that this one replaces, which
// is 30 seconds.
const readyTimeout = time.Minute

// AwaitPeers waits until the other replicas take relays from this one. The name server must have its address, and
// each peer that runs must have looked it up. Peers may ask other name servers than this replica does, and each may
// keep an old address. AwaitPeers waits a minute at most, because the replica can serve without relays. It returns
// early when ctx ends.
func (c *Cluster) AwaitPeers(ctx context.Context) {
	c.awaitPeers(ctx, netaddr.NewHost(c.Peers[c.Replica], netaddr.SystemLookup), c.local, c.refusing)
}

func (c *Cluster) awaitPeers(
	ctx context.Context, self *netaddr.Host, local func(netip.Addr) bool, refusing func(context.Context) []string,
) {
	if _, err := netip.ParseAddr(self.Name()); err == nil {
		return
	}
	for began := time.Now(); ; {
		found := slices.ContainsFunc(self.Renewed(ctx, lookAgain), local)
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
				"other replicas refuse the relays of this one; look whether their name servers have its address, "+
					"and at cluster.peers",
				"name", self.Name(), "addresses", self.Known(), "peers", refused)
			return
		default:
			c.Log.Warn(
				"the name of this replica does not have its address, so the other replicas refuse its relays; look "+
					"at cluster.peers",
				"name", self.Name(), "addresses", self.Known())
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
	}
}

// refusing are the names of the peers that run and take no relays from this replica.
func (c *Cluster) refusing(ctx context.Context) []string {
	var names []string
	for n, host := range c.Peers {
		if n != c.Replica && c.refusedBy(ctx, n) {
			names = append(names, host)
		}
	}
	return names
}

// refusedBy says whether a peer runs and takes no relays from this replica.
func (c *Cluster) refusedBy(ctx context.Context, peer int) bool {
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := c.dialOwner(dialing, Slice(c.Ports, peer, len(c.Peers)).First)
	if err != nil {
		return false // it looks this replica up when it starts
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	header, err := relayHeader(conn.LocalAddr(), conn.RemoteAddr(), question())
	return err != nil || (&relay{owner: conn}).offer(header, c.within) != nil
}

// local says whether relays may come from an address: whether it is one of this machine, and the one that Address
// names.
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
