// Package wire is the control connection as bytes: it takes command lines out of them, reads the arguments of commands
// that are more than a word or a pathname, and writes replies. It knows no session.
//
// A [Conn] is one control connection: [Conn.Lines] are the commands, [Conn.BufferReply] and [Conn.Flush] write replies,
// and [Conn.PeerClosed] and [Conn.HungUp] tell when the client has disconnected. [Conn.StartTLS] and [Conn.StopTLS]
// change what is below. [TransferParameters] keep what TYPE, REST, RANG and ALLO say until the next transfer.
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
//   - what XCRC and the like, SITE PRESIGN, SITE UTIME and the options of LIST look like,
//     which no document defines
package wire
