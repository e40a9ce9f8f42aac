package limits

import "net/netip"

// subnet is the length in bits of the IPv6 prefix that a provider assigns to one site (RFC 6177). A client can choose
// any address in it.
const subnet = 64

// Network returns the network that counts as one client: an IPv4 address or the /64 of an IPv6 address. It returns the
// zero value for the zero address.
func Network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap()
	network, err := addr.Prefix(min(addr.BitLen(), subnet))
	if err != nil {
		return netip.Prefix{}
	}
	return network
}
