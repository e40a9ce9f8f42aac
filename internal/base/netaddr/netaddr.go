// Package netaddr handles addresses, ports and host names, in addition to packages net and net/netip.
//
// [Of] returns the IP address of a [net.Addr], and a [PortRange] is a range of TCP ports. A [Host] caches the addresses
// of a host that may move. [ParseHost] and [CheckServerName] check the names that clients use for the server: the
// argument of HOST (RFC 7151) and the TLS server name (RFC 6066).
package netaddr

import (
	"net"
	"net/netip"
)

// Of returns the IP address of a TCP address, or the zero value for other addresses. IPv4-mapped IPv6 addresses are
// returned as IPv4. A link-local address keeps its zone, which is needed to connect to it (RFC 4007, section 11).
func Of(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap()
}
