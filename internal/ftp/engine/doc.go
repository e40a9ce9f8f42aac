// Package engine runs FTP commands with ftpserverlib, which performs logins, file commands and transfers.
//
// [Server] is one server of the library for all sessions, and [Server.NewEngine] returns the [Engine] of one
// session. [Engine.Run] passes one command to the library, an [Operation], and returns when the library has
// replied. The session owns all state, such as the login, the working directory, the offset of REST and the source
// of a rename. The operation holds everything that the command needs in typed fields. The library's driver (the
// type files, an afero file system) reads them there, so the line that the library parses is constant, such as
// "RETR /f".
//
// An engine starts a session of the library when a command needs it, and [Engine.Stop] ends it between any two
// commands. That session is an in-memory connection. It begins with PASS, for which the library gets the driver of
// a login that the session has already authenticated.
//
// The library decides which driver method a command calls, the flags of STOR and APPE, the line ends of TYPE A,
// the loop that copies the data, the order of TransferError and Close, and what a panic ends. Pathnames, offsets,
// listings and texts do not pass through it, because clients must not see how it handles some of them: it ends a
// command line at LF, reads verbs in any letter case of Unicode, treats an empty argument as the working
// directory, opens the file of an upload before the data connection, and replies in English. The section "What
// ftpserverlib gets wrong" of docs/architecture.md lists these problems with their places in the library.
//
// The commands are defined by RFC 959, section 4.1, and RFC 2428, section 3 (an EPSV that no client sees).
package engine
