// Package ftplist writes and reads the texts of FTP listings: lines of LIST,
// facts of MLST and MLSD, time values, and patterns. A [Listing] reads a directory
// and writes its lines. The package knows no session: arguments hold what a line
// depends on.
//
// It follows
//
//   - RFC 959, section 4.1.3: LIST; its lines are those of ls -l
//   - RFC 3659, section 2.3: time values; sections 7.2, 7.5 and 7.8: facts, and how
//     FEAT and OPTS MLST list them
package ftplist
