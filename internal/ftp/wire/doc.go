// Package wire implements the control connection at the level of bytes: it splits the input into command lines,
// parses arguments that are more than a word or a pathname, and writes replies. It does not depend on sessions.
//
// A [Conn] is one control connection. [Conn.Lines] returns the commands, [Conn.BufferReply] and [Conn.Flush] write
// replies, and [Conn.PeerClosed] and [Conn.HungUp] report a client that has disconnected. [Conn.StartTLS] and
// [Conn.StopTLS] start and stop TLS. [TransferParameters] hold the values of TYPE, REST, RANG and ALLO until the
// next transfer.
//
// Implemented here:
//
//   - RFC 959, sections 4.2 and 5.3: the form of replies and commands
//   - RFC 854, page 11, and RFC 1123, section 4.1.2.12: CR NUL, Telnet commands
//   - RFC 2640, section 3.1: CR NUL and IAC in pathnames, one SP before them
//   - RFC 3659, section 2.2: IAC in replies
//   - RFC 4217, sections 4, 10.1 and 13: TLS begins and ends on the connection
//   - RFC 959, sections 3.1.1, 4.1.3 and 5.3: TYPE, ALLO, numbers
//   - RFC 3659, section 5: REST
//   - draft-bryan-ftp-range-08, section 3: RANG
//   - draft-ietf-ftpext2-hash-03, section 3: the names of algorithms
//   - draft-somers-ftp-mfxx-03, section 5: MFF
//   - the syntax of XCRC and similar commands, SITE PRESIGN, SITE UTIME and the options of LIST,
//     which no document defines
package wire
