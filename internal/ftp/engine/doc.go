// Package engine puts ftpserverlib behind an interface: one server of the library for all sessions, and in it an
// engine for each, which speaks FTP to the session in memory.
//
// [Server.Start] starts an [Engine], [Engine.Send] gives it a command and [Engine.Replies] are its replies. Only the
// class of their codes counts, and their texts are for no client. What the engine asks of the storage goes to the
// [Operation] of the command, which keeps errors and where a name was found. [Engine.PrepareTransfer] lets the engine
// transfer over a connection of package dataconn.
//
// The engine's commands are those of RFC 959, section 4.1, RFC 2428, section 3 (an EPSV that no client sees), and RFC
// 3659, section 5 (REST).
package engine
