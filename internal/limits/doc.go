// Package limits bounds what one client may take of a server that all share.
//
// [Sessions] counts sessions: all of them, and those of each address or user. Who is above
// a maximum gets reply 421 (RFC 959, section 4.2.1). [Queue] shares out work that takes a
// processor. [Throttle] slows down clients that fail. [Network] tells which addresses count as one client.
package limits
