// Package relay handles connections that arrive through another machine: a load balancer or another replica. It
// reads the PROXY headers of load balancers, and relays data connections to the replica whose session waits for
// them, so that a load balancer may send them to any replica.
//
// [Trust] holds the networks whose PROXY headers are trusted and required. The headers have the addresses of
// clients. [Trust.Listen] wraps the listener of control connections, [Trust.Accept] a single connection.
//
// Each replica hands out the passive ports of its own [Slice], and listens on all ports. A [Cluster] accepts
// connections on the ports of other replicas and relays each to the owner of its port, which receives it with
// [Cluster.Receive].
//
// A relay is a TCP connection to the same port of the owner. It begins with a PROXY header of version 2 that has
// the addresses of the client. After that, both sides send frames. If a replica is killed, its kernel closes its
// connections as if they were complete. So the end of the data in each direction is marked by a frame, and a
// connection that ends without this frame was cut. The owner ends a download only after the relay has confirmed
// that everything was delivered. After a complete upload the owner sends a frame too, because many clients then
// close or reset their connection without reading the rest. Both sides send progress frames, so that neither waits
// forever if the network fails.
//
// Implemented here:
//
//   - RFC 2577, section 3: which addresses may connect
//   - The PROXY protocol, versions 1 and 2 (haproxy.org/download/3.2/doc/proxy-protocol.txt), by
//     github.com/pires/go-proxyproto, with a type of section 2.2.8 between replicas
package relay
