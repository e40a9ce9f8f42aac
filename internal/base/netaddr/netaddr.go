// Package netaddr has what package net/netip lacks: the IP address of a [net.Addr], and ranges of TCP ports.
package netaddr

import (
	"net"
	"net/netip"
)

// Of is the IP address of a TCP address, IPv4 never mapped into IPv6. A link-local address
// has its zone, without which no data connection reaches it (RFC 4007 11).
func Of(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap()
}
