// Package limits bounds what one client may take of a server that all share.
//
// [Scopes] count sessions, logins, commands, transfers, operations, passive ports and bytes: those of the server, of
// each address, tenant and user. A client above a maximum gets reply 421, 425 or 450 (RFC 959, section 4.2.1), or
// waits. [Throttle] slows down clients that fail. [Network] tells
// which addresses count as one client. [Expiring] maps and [Score] are how these and others forget clients.
package limits
