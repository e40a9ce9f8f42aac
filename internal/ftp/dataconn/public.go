package dataconn

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/babelftp/babelftp/internal/base/netaddr"
)

// publicTTL limits how long the resolved addresses of a host name are used.
const publicTTL = 30 * time.Second

// Public selects the address that PASV shows to a client (RFC 959, 4.1.2). The zero value selects the local
// address of the control connection.
type Public struct {
	Host     *netaddr.Host                  // for all clients; nil selects the local address
	Networks map[netip.Prefix]*netaddr.Host // overrides Host for clients in these networks
}

// For returns the address to show to a client. The zero value means the local address of the control connection.
// The error reports a host name without an IPv4 address.
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
	for _, addr := range host.Addrs(ctx, publicTTL) {
		if addr.Is4() {
			return addr, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("the host %q has no IPv4 address", host.Name())
}
