// Package dataconn makes the data connection of a transfer and watches it.
//
// Package passive, and [Dial], make a [Source], which waits for the client or connects to
// it when a [Transfer] begins. A Transfer is one use of a data connection. It
// opens it, under TLS where the client has asked for it, counts the bytes, and ends
// a stalled one. [Transfer.Stop] stops it. Before an upload is published,
// [Transfer.AwaitCommit] makes sure that its client is still connected.
//
// Implemented here:
//
//   - RFC 959, section 4.1.2: the arguments of PORT
//   - RFC 2428, section 2: EPRT
//   - RFC 2577, section 3: where the server connects to
//   - RFC 4217, sections 7, 9 and 10: TLS on data connections
//   - RFC 8446, sections 4.6.1, 5.1 and 6.1: session tickets, records, close_notify
package dataconn
