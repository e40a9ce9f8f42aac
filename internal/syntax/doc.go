// Package syntax reads the arguments of FTP commands that are more than a word or
// a pathname. It knows no session.
//
// Implemented here:
//
//   - RFC 959, sections 4.1.3 and 5.3: ALLO, numbers
//   - draft-bryan-ftp-range-08, section 3: RANG
//   - draft-somers-ftp-mfxx-03, section 5: MFF
//   - what XCRC and the like, SITE PRESIGN and the options of LIST look like,
//     which no document defines
package syntax
