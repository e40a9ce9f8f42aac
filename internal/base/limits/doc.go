// Package limits bounds what one client may take of a server that all share.
//
// [Scopes] count sessions, logins, commands, transfers, operations and bytes: those of the server, of
// each address, tenant and user. A client above a maximum gets reply 421 or 450 (RFC 959, section 4.2.1), or
// waits. [Throttle] slows down clients that fail. [Network] tells which addresses count as one client. [Expiring] maps
// and [Score] are how these and others forget clients.
//
// [Reserve] keeps the last file descriptors of the process free, so that probes and metrics are answered while clients
// take all others. The kernel gives a new descriptor the lowest free number, so a number near the limit (RLIMIT_NOFILE)
// shows that nearly all are in use. Who opens a connection for a client asks [Reserve.Scarce] and closes it again, or
// opens it with [Reserve.Control].
package limits
