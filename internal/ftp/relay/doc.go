// Package relay knows connections that come by way of another machine: a load balancer, or another replica. It reads
// the PROXY headers of load balancers, and passes data connections on to the replica whose session waits for them, so
// that a load balancer may send them to any replica.
//
// [Trust] says from which networks the headers of load balancers are believed, and required. They tell the addresses of
// clients. [Trust.Listen] wraps the listener of control connections, [Trust.Accept] a single connection.
//
// Each replica hands out passive ports of its own [Slice], and listens on all ports. A [Cluster] takes connections on
// the ports of other replicas, and relays each to the owner of the port. There it receives connections with
// [Cluster.Receive].
//
// A relay is a TCP connection to the same port of the owner. It begins with a PROXY header of version 2 that has the
// client's addresses. Frames follow, in both directions. A replica that is killed closes its connections as if they
// were complete. So each direction ends with a frame that says so, and a connection that ends without it was cut. The
// owner ends a download only when the relay has passed on everything. When it has a whole upload it says so, because
// many clients then close their socket, or reset the connection, and read nothing more. Both say again and again that
// they live or move, so that neither waits for the other one when the network is gone.
//
// Implemented here:
//
//   - RFC 2577, section 3: who may connect
//   - The PROXY protocol, versions 1 and 2 (haproxy.org/download/3.2/doc/proxy-protocol.txt), by
//     github.com/pires/go-proxyproto, with a type of section 2.2.8 between replicas
package relay
