// Package control serves FTP control connections.
//
// [Server] accepts them and runs a [session] on each. A session is one goroutine that handles the commands of its
// client in order, and only it writes replies; a second goroutine reads. Its state has five parts, which do not know
// each other: the [dialogue] on the control connection, the [identity] of the client, the [settings] for the commands
// that follow, the [dataPort] for the next data connection, and the [operation] that is running.
//
// A command takes one way. Package wire turns bytes into a line, and [session.received] passes it on.
// [session.dispatch] finds the row of the verb in the command table (command.go), and checks login, argument and
// limits. The function of the row returns a reply, or an error. [session.finish] makes the outcome of that, which
// decides the reply, the logs, the metrics and the events.
//
// A row's function gets the part of the session that it needs (rows.go):
//
//   - A [settingsCommand] shows or changes the identity and the settings: TYPE, REST, OPTS, LANG, FEAT, HELP.
//   - A [fileCommand] asks the storage. It gets a [fileRequest] with a copy of the settings: MLST, HASH, SITE COPY.
//   - [byLibrary] lets ftpserverlib change or find a file, and a function of the fileRequest replies: DELE, CWD, RNFR.
//   - The commands that log in, encrypt, open data connections or transfer get the session itself.
//
// Work that may wait runs in a goroutine of its own, while [session.await] watches for ABOR, STAT, a shutdown and the
// end of the connection. [session.perform] calls it, and returns why the command has failed, if it has. The work is a
// function that asks the storage (a fileCommand, or a listing), or it is [engine.Engine.Run], by which ftpserverlib
// performs file commands and transfers.
//
// The files build on each other in one direction: the parts of a session (dialogue.go, identity.go, settings.go,
// operation.go), the session (session.go), what all commands share (outcome.go, await.go, request.go, rows.go), the
// commands, their table (command.go), the way to it (dispatch.go), and the life of a session (run.go).
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
