package cluster

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/babelftp/babelftp/internal/lookup"
)

// nameTimeout is longer than a name server of Kubernetes keeps the address of the pod that this one replaces, which is 30 seconds.
const nameTimeout = time.Minute

// AwaitName waits until the name server has the address of this replica, which the other replicas ask for before they take its relays. It
// waits a minute at most, because the replica can serve without relays, and returns early when ctx ends.
func (c *Cluster) AwaitName(ctx context.Context) {
	c.awaitName(ctx, lookup.NewHost(c.Peers[c.Replica], lookup.System), c.local)
}

func (c *Cluster) awaitName(ctx context.Context, self *lookup.Host, local func(netip.Addr) bool) {
	if _, err := netip.ParseAddr(self.Name()); err == nil {
		return
	}
	for began := time.Now(); ; {
		found := slices.ContainsFunc(self.Renewed(ctx, lookAgain), local)
		switch {
		case ctx.Err() != nil:
			return
		case !found && time.Since(began) >= nameTimeout:
			c.Log.Warn("the name of this replica does not have its address, so the other replicas refuse its relays; look at cluster.peers",
				"name", self.Name(), "addresses", self.Known())
			return
		}
		select { // also when it is found: the others may have looked just before
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
		if found {
			return
		}
	}
}

// local says whether relays may come from an address: whether it is one of this machine, and the one that Address names.
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
