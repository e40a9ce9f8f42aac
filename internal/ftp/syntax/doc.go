// Package syntax reads the arguments of FTP commands that are more than a word or
// a pathname. It knows no session. [TransferParameters] keep what TYPE, REST, RANG and
// ALLO say until the next transfer.
//
// Implemented here:
//
//   - RFC 959, sections 3.1.1, 4.1.3 and 5.3: TYPE, ALLO, numbers
//   - RFC 3659, section 5: REST
//   - draft-bryan-ftp-range-08, section 3: RANG
//   - draft-ietf-ftpext2-hash-03, section 3: the names of algorithms
//   - draft-somers-ftp-mfxx-03, section 5: MFF
//   - what XCRC and the like, SITE PRESIGN, SITE UTIME and the options of LIST look like,
//     which no document defines
package syntax
