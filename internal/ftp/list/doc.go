// Package list makes the listings of LIST, NLST, MLSD and STAT. A [Listing] looks in a
// storage for what is to be listed, and writes the lines. Facts and time values, which
// these lines hold, serve MLST, MDTM and MFMT too. The package knows no session:
// arguments hold what a line depends on.
//
// It follows
//
//   - RFC 959, section 4.1.3: LIST and NLST; the lines of LIST are those of ls -l
//   - RFC 1123, section 4.1.2.7: the pathnames of NLST
//   - RFC 3659, section 2.3: time values; sections 7.2, 7.5 and 7.8: facts, and how
//     FEAT and OPTS MLST list them
package list
