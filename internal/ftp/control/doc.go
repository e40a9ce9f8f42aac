// Package control serves FTP control connections.
//
// [Server] accepts them and runs a [session] on each. A session is one goroutine that handles the commands of its
// client in order, and only it writes replies; a second goroutine reads. Its state has four parts, which do not know
// each other: the [dialogue] on the control connection, the [identity] of the client, the [settings] for the commands
// that follow, and the [operation] that is running.
//
// A command takes one way. Package wire turns bytes into a line. [session.dispatch] finds the row of the verb in the
// command table (command.go) and checks login, argument and limits. The function of the row returns a reply, or an
// error. [session.finish] makes the outcome of that, which decides the reply, the logs, the metrics and the events.
//
// Work that may wait runs in a goroutine of its own, while [session.await] watches for ABOR, STAT, a shutdown and the
// end of the connection. [session.perform] calls it, and returns why the command has failed, if it has. The work is a
// function that asks the storage (a [fileCommand], or a listing), or it is [engine.Engine.Run], by which ftpserverlib
// performs file commands and transfers.
//
// Implemented here:
//
//   - RFC 959 (FTP), sections 4 and 5: commands and replies
//   - RFC 854 (Telnet), page 11: CR NUL, IAC sequences
//   - RFC 1123, section 4.1: requirements for FTP servers
//   - RFC 2228 and RFC 4217: AUTH TLS, PBSZ, PROT, CCC, REIN under TLS
//   - RFC 2389: FEAT and OPTS
//   - RFC 2428: EPRT and EPSV
//   - RFC 2640: pathnames in UTF-8, one SP before them, LANG
//   - RFC 3659: MLST, MLSD, MDTM, SIZE, REST, TVFS
//   - RFC 7151: HOST
//   - draft-somers-ftp-mfxx-03: MFMT, MFF
//   - draft-ietf-ftpext2-hash-03: HASH, OPTS HASH
//   - draft-bryan-ftp-range-08: RANG, before HASH and RETR
package control
