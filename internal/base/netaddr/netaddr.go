// Package netaddr reads the addresses, ports and names of hosts, which packages net and net/netip do only in part.
//
// [Of] is the IP address of a [net.Addr], and [PortRange] a range of TCP ports. A [Host] is looked up again and again,
// because it may move. [ParseHost] and [CheckServerName] read the names by which clients reach a server: the argument
// of HOST (RFC 7151) and the server name of TLS (RFC 6066).
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
