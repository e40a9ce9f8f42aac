// Package accept accepts the connections of clients, and reads the PROXY headers of load balancers.
//
// [Trust] says from which networks the headers of load balancers are believed, and required. They tell the addresses of
// clients. [Trust.Listen] wraps the listener of control connections, [Trust.Accept] a single connection. [Header] makes
// a header for a connection that this server passes on.
//
// [Acceptor.Serve] accepts connections of one listener and runs a [Session] on each. [Acceptor.Shutdown] tells the
// sessions to end and waits for them (RFC 959, section 4.2: reply 421). Until then new sessions end so too. The
// listeners close last: a load balancer may still send clients.
//
// Implemented here, by github.com/pires/go-proxyproto:
//
//   - The PROXY protocol, versions 1 and 2 (haproxy.org/download/3.2/doc/proxy-protocol.txt)
package accept
