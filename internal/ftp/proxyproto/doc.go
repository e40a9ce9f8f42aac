// Package proxyproto learns the addresses of clients from the headers that load balancers put before a connection.
//
// [Trust] says from which networks headers are believed, and required. [Trust.Listen] wraps the listener of control
// connections, [Trust.Accept] a single connection. [Header] makes a header for a connection that this server passes
// on.
//
// Implemented here, by github.com/pires/go-proxyproto:
//
//   - The PROXY protocol, versions 1 and 2 (haproxy.org/download/3.2/doc/proxy-protocol.txt)
package proxyproto
