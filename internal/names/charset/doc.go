// Package charset translates between the bytes of pathnames and UTF-8, for
// clients that write in a charset from before UTF-8. [Parse] makes an [Encoding]
// from the label in a configuration. Decode and Encode translate one segment of a
// pathname. Encode gives back the bytes that Decode was given.
//
// It follows
//
//   - RFC 3629, the successor of RFC 2279: which bytes are UTF-8; U+FEFF stays,
//     because a pathname is not the start of a stream
//   - RFC 2640, section 3.1 and annex B.3: a name that is UTF-8 is UTF-8. Any other
//     is in the configured charset. A name that the charset lacks goes out in UTF-8.
//   - draft-ietf-ftpext-intl-ftp-00, sections 3.1 and 3.1.1: the strategies of a
//     server with a configured charset, for single directories too, and of a
//     mirror, which keeps the bytes
//   - the WHATWG's Encoding Standard: the labels of charsets, and what they mean
//     to the systems that use them
package charset
