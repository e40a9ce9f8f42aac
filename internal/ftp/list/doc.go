// Package list writes the listings of LIST, NLST, MLSD and STAT. [NewLong], [NewNames] and [NewFacts] create a
// [Listing]. [Listing.Open] finds the entries in a storage, and [Listing.WriteLines] writes the lines. [Facts] are
// also used for MLST. The package does not depend on sessions: a [Client] has everything that a line depends on.
//
// Implemented here:
//
//   - RFC 959, section 4.1.3: LIST and NLST; LIST has the lines of ls -l
//   - RFC 1123, section 4.1.2.7: the pathnames of NLST
//   - RFC 3659, section 2.3: time values; sections 7.2, 7.5 and 7.8: facts, and their lists in FEAT and OPTS MLST
package list
