// Package pathname translates pathnames between clients and the storage.
//
// [Rules] say how a user's names are written. A [Codec] decodes the arguments of commands and encodes names for replies
// and listings. A [Resolver] finds a name in the storage whichever variant of it the client sends, and gives new names
// their form. Pathnames in the storage are absolute, clean and UTF-8.
//
// An [Encoding] translates one segment of a pathname between UTF-8 and the bytes of clients that write in a charset
// from before UTF-8, or in one of several. [ParseEncoding] makes one from the labels in a configuration. Bytes can have
// several [Reading]s, and Encode gives back the bytes of the first one. A session keeps a [Choice], which its commands
// and names decide once. A [Name] has all readings until the Resolver knows which of them exists.
//
// A [URIBase] writes the URI of a file on the server, and [URILines] makes 8URIs of URIs, for people to read.
//
// It follows
//
//   - RFC 2640, sections 2, 3.1 and annexes A.1 and B.3: pathnames in UTF-8; every SP belongs to them. Names in the
//     configured charset can be valid UTF-8 by chance. A name that the charset lacks goes out in UTF-8.
//   - RFC 3629, the successor of RFC 2279: which bytes are UTF-8; U+FEFF stays, because a pathname is not the start of
//     a stream
//   - RFC 3659, section 2.2: line breaks in pathnames
//   - draft-ietf-ftpext-intl-ftp-00, sections 3.1 and 3.1.1: the strategies of a server with a configured charset, for
//     single directories too, and of a mirror, which keeps the bytes
//   - the WHATWG's Encoding Standard: the labels of charsets, and what they mean to the systems that use them
//   - RFC 1738, section 3.2, and RFC 3986, section 2.3: the scheme ftp, percent-encoding
//   - draft-masinter-url-i18n, sections 2.1, 2.2 and 3.2: UTF-8 in URIs, 8URIs; 3.4 and 5: names that look the same
package pathname
