// Package control serves FTP control connections.
//
// [Server] accepts connections and runs a [session] on each. One goroutine of the session handles the commands of
// the client in order and is the only one that writes replies. A second goroutine reads lines. The state of a
// session has five parts, which do not know each other: the [dialogue] on the control connection, the [identity]
// of the client, the [commandState] for later commands, the [dataPort] for the next data connection, and the running
// [operation].
//
// All commands take the same path. Package wire turns bytes into a line, which [session.received] passes on.
// [session.dispatch] finds the row of the verb in the command table (command.go) and checks login, argument and
// limits. The function of the row returns a reply or an error. [session.finish] makes an outcome from it, which
// decides the reply, the logs, the metrics and the events.
//
// The function of a row gets only the part of the session that it needs (rows.go):
//
//   - A [stateCommand] shows or changes the identity and the state: TYPE, REST, OPTS, LANG, FEAT, HELP.
//   - A [fileCommand] calls the storage. It gets a [fileRequest] with a copy of the state: MLST, HASH, SITE COPY.
//   - [byLibrary] lets ftpserverlib find or change a file, then a function of the fileRequest replies: DELE, CWD, RNFR.
//   - Commands that log in, encrypt, open data connections or transfer files get the session itself.
//
// Work that may block runs in its own goroutine. [session.perform] starts it and calls [session.await], which
// waits for it and watches for ABOR, STAT, a shutdown and the end of the connection. The work is a function that
// calls the storage (a fileCommand or a listing) or [engine.Engine.Run], which performs file commands and
// transfers with ftpserverlib.
//
// To add a command, write its function, add a row to the command table, and test it with a script of commands and
// replies.
//
// The files depend on each other in one direction: the parts of a session (dialogue.go, identity.go, commandstate.go,
// operation.go), the session (session.go), what all commands share (outcome.go, await.go, request.go, rows.go),
// the commands, their table (command.go), dispatch.go, and the life of a session (run.go).
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
