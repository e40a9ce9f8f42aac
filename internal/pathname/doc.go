// Package pathname translates pathnames between clients and the storage.
//
// [Rules] define how a user's names are written. A [Codec] decodes the arguments of commands, and encodes names for
// replies and listings. A [Resolver] finds a name in the storage whichever variant of it the client sends, and gives
// new names their form. Pathnames in the storage are absolute, clean and UTF-8.
//
// An [Encoding] translates one segment of a pathname between UTF-8 and the bytes of clients that use a legacy charset,
// or one of several. [ParseEncoding] creates it from the labels in a configuration. Bytes can have several [Reading]s,
// and Encode returns the bytes of the first one. A session keeps a [Choice], which its commands and names determine
// once. A [Name] keeps all readings until the Resolver knows which of them exists.
//
// A [URIBase] builds the URI of a file on the server, and [URILines] converts URIs to 8URIs, which are easier to read.
//
// The package follows
//
//   - RFC 2640, sections 2, 3.1 and annexes A.1 and B.3: pathnames in UTF-8; all spaces belong to them. Names in the
//     configured charset can be valid UTF-8 by chance. A name that the charset cannot encode is sent in UTF-8.
//   - RFC 3629, the successor of RFC 2279: which bytes are valid UTF-8. U+FEFF is kept, because a pathname is not the
//     start of a stream.
//   - RFC 3659, section 2.2: line breaks in pathnames
//   - draft-ietf-ftpext-intl-ftp-00, sections 3.1 and 3.1.1: the strategies of a server with a configured charset,
//     also for single directories, and of a mirror, which keeps the bytes
//   - the WHATWG's Encoding Standard: the labels of charsets, and what they mean to the systems that use them
//   - RFC 1738, section 3.2, and RFC 3986, section 2.3: the scheme ftp, percent-encoding
//   - draft-masinter-url-i18n, sections 2.1, 2.2 and 3.2: UTF-8 in URIs, 8URIs; 3.4 and 5: names that look the same
package pathname
