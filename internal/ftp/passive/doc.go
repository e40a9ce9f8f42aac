// Package passive makes the passive ports of a server, on which sessions wait for the data connections of their
// clients.
//
// [Ports] are the ports. Sessions share them if their clients have different addresses. [Ports.Listen] makes a
// [dataconn.Source], which waits for the client of one session.
//
// Implemented here:
//
//   - RFC 959, sections 3.2 and 4.1.2: PASV
//   - RFC 2428, section 3: EPSV
//   - RFC 2577, section 3: who may connect
package passive
