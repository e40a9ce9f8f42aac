// Package descriptors keeps the last file descriptors of the process free, so that probes
// and metrics are answered while clients take all others.
//
// The kernel gives a new descriptor the lowest free number. So a number near the limit
// (RLIMIT_NOFILE) shows that nearly all descriptors are in use. Who opens a connection
// for a client asks [Reserve.Scarce] and closes it again, or opens it with [Reserve.Control].
package descriptors
