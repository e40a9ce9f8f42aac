// Package pathname translates pathnames between clients and the storage. A [Codec]
// decodes what a client names, segment by segment, and encodes what it is shown. A
// [Resolver] finds what is written otherwise in the storage, and gives new names
// their form. Names in the storage are absolute, clean and UTF-8.
//
// It follows
//
//   - RFC 2640, sections 2 and 3.1: pathnames in UTF-8, with all that stands in them
//   - RFC 3659, section 2.2: pathnames on one line, whatever characters they have
//   - draft-ietf-ftpext-intl-ftp-00, sections 3.1 and 3.1.1: directories with an
//     encoding of their own
//   - draft-masinter-url-i18n, sections 3.4 and 5: names that look the same
package pathname
