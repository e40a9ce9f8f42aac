// Package engine runs FTP commands with ftpserverlib, which performs logins, file commands and transfers.
//
// [Server] is one server of the library for all sessions, and [Server.NewEngine] returns the [Engine] of one session.
// [Engine.Run] gives the library one command, an [Operation], and returns when the library has replied to it. The
// session owns all state: who is logged in, the working directory, the offset of REST, the source of a rename. The
// operation carries what the command needs in typed fields, and the library's driver (the type files, an afero file
// system) reads them there. The line that the library parses is constant, such as "RETR /f".
//
// An engine starts the library's session when a command needs one, and [Engine.Stop] ends it between any two commands.
// That session is a connection in memory. It begins with PASS, for which the library gets the driver of the login that
// the session has already authenticated.
//
// What the library decides: which driver call a command makes, the flags of STOR and APPE, the line ends of TYPE A,
// the loop that copies the data, the order of TransferError and Close, and what a panic ends. Pathnames, offsets,
// listings and texts do not pass through it, because it handles several of them in ways that no client may see: it
// ends a command line at LF, reads verbs in any letter case of Unicode, takes an empty argument for the working
// directory, opens the file of an upload before the data connection, and replies in English. The section
// "What ftpserverlib gets wrong" of docs/architecture.md lists these with their places in the library.
//
// The commands are defined by RFC 959, section 4.1, and RFC 2428, section 3 (an EPSV that no client sees).
package engine
