// Package control is the control connection in front of the session engine (ftpserverlib). A session reads commands
// with RFC 2640 and Telnet framing. It answers some itself and forwards the others to an engine of its own in memory.
// What the client reads comes from the catalogues, by the class of the engine's code and by what the storage and the
// data connection have done. It also owns the data connections, and hands the engine connections that are already
// open.
//
// A [session] has four parts, which do not know each other. They are the [dialogue] on the control connection, the
// [identity] of the client, the [settings] for the commands that follow, and the [operation] that runs. Each command
// has one row in the table of command.go. Its function returns its reply or an error, and [session.finish] makes its
// outcome of that.
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
//
// One goroutine for each session, [session.Run], handles commands one after another and is the only one that writes
// to the client. A second one reads. Each command has an [operation], whose context ends with it. While a command
// runs, [await] reacts to ABOR, STAT, the end of the control connection and a shutdown.
package control
