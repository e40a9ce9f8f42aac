package dataconn

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/babelftp/babelftp/internal/base/netaddr"
)

// publicFor is how long the addresses of a host name count without another look.
const publicFor = 30 * time.Second

// Public is the address that PASV shows to a client (RFC 959 4.1.2). The zero value shows the one that the client has
// reached.
type Public struct {
	Host     *netaddr.Host                  // for all clients, nil for the address that they have reached
	Networks map[netip.Prefix]*netaddr.Host // for the clients of networks
}

// For is the address for a client, the zero value for the one that the client has reached. The error says that a host
// name has no IPv4 address.
func (p Public) For(ctx context.Context, client netip.Addr) (netip.Addr, error) {
	host, longest := p.Host, -1
	for network, own := range p.Networks {
		if network.Contains(client.WithZone("")) && network.Bits() > longest {
			host, longest = own, network.Bits()
		}
	}
	if host == nil {
		return netip.Addr{}, nil
	}
	for _, addr := range host.Addrs(ctx, publicFor) {
		if addr.Is4() {
			return addr, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("the host %q has no IPv4 address", host.Name())
}
