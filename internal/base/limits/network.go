package limits

import "net/netip"

// subnet is the part of an IPv6 address that a provider gives to one customer, in bits
// (RFC 6177). A client can choose any address in it.
const subnet = 64

// Network is what counts as one client: an IPv4 address, or the /64 of an IPv6 address.
// Without an address it is the zero value.
func Network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap()
	network, err := addr.Prefix(min(addr.BitLen(), subnet))
	if err != nil {
		return netip.Prefix{}
	}
	return network
}
