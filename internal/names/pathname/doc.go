// Package pathname translates pathnames between clients and the storage. [Rules] say
// how a user's names are written. A [Codec] decodes the arguments of commands and
// encodes names for replies and listings. A [Resolver] finds a name in the storage
// whichever variant of it the client sends, and gives new names their form. Pathnames
// in the storage are absolute, clean and UTF-8. A [Base] writes the URI of a file on the server,
// and [To8URI] makes an 8URI of one, for people to read.
//
// It follows
//
//   - RFC 2640, sections 2 and 3.1: pathnames in UTF-8; every SP belongs to them
//   - RFC 3659, section 2.2: line breaks in pathnames
//   - draft-ietf-ftpext-intl-ftp-00, sections 3.1 and 3.1.1: directories with an
//     encoding of their own
//   - RFC 1738, section 3.2, and RFC 3986, section 2.3: the scheme ftp, percent-encoding
//   - draft-masinter-url-i18n, sections 2.1, 2.2 and 3.2: UTF-8 in URIs, 8URIs; 3.4 and 5: names that look the same
package pathname
