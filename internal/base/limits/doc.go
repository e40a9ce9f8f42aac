// Package limits limits the resources that one client may use of a server that many share.
//
// A [Scope] counts the sessions, logins, commands, transfers, operations and bytes of the server, an address, a tenant
// or a user. A session belongs to several [Scopes] and needs room in each:
//
//	scopes, release, err := server.Admit(&limits.Session{Addr: remote}) // server and address
//	...
//	release, err = scopes.AcquireTransfer()
//	if err != nil {
//		// a *limits.Error names the limit: reply 450
//	}
//	defer release()
//
// A client above a limit gets reply 421 or 450 (RFC 959, section 4.2.1) or has to wait.
//
// [Throttle] delays the attempts of clients that fail repeatedly. [Network] maps addresses to clients. [Expiring] and
// [Score] forget clients after some time, and [Sampler] keeps a flood of events out of the log.
//
// [Reserve] keeps the last file descriptors of the process free, so that probes and metrics work even if clients use
// all other descriptors. The kernel gives a new descriptor the lowest free number, so a number near the limit
// (RLIMIT_NOFILE) shows that nearly all descriptors are in use. Code that accepts connections checks
// [Reserve.IsReached] and closes the connection again; code that dials or listens uses [Reserve.Control].
package limits
