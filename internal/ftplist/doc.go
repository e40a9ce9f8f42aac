// Package ftplist writes and reads the texts of FTP listings: the lines of LIST,
// the facts of MLST and MLSD, time values, and the patterns that LIST and NLST
// take for a pathname. A [Listing] reads a directory and writes its lines. The package
// knows no session; what a line depends on comes as an argument.
//
// It follows
//
//   - RFC 959, section 4.1.3: LIST; its lines are those of ls -l
//   - RFC 3659, section 2.3: time values; sections 7.2, 7.5 and 7.8: facts, and how
//     FEAT and OPTS MLST list them
package ftplist
