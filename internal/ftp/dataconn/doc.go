// Package dataconn opens the data connections of transfers and watches them.
//
// A [Source] provides the connection when a [Transfer] begins: [Dial] connects to the client, and [Ports.Listen]
// waits for the client on a passive port. [Ports] are the passive ports of the server. Several sessions can share
// a port if their clients have different addresses.
//
// A Transfer is one use of a data connection. It opens the connection, with TLS if the client has requested it,
// counts the bytes, and ends the transfer if it stalls. [Transfer.Stop] stops it. Before an upload is committed,
// [Transfer.AwaitCommit] checks that its client is still connected.
//
// Implemented here:
//
//   - RFC 959, sections 3.2 and 4.1.2: PASV, and the arguments of PORT
//   - RFC 2428, sections 2 and 3: EPRT, EPSV
//   - RFC 2577, section 3: which addresses the server connects to, and which may connect
//   - RFC 4217, sections 7, 9 and 10: TLS on data connections
//   - RFC 8446, sections 4.6.1, 5.1 and 6.1: session tickets, records, close_notify
package dataconn
