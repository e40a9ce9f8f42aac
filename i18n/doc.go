// Package i18n keeps the texts of the server in every language and chooses the
// language for a reader. It renders texts and never writes to a connection. It
// also knows the encodings in which clients write pathnames.
//
// Texts come from the catalogues of package locales and from an operator's own,
// are stored in a golang.org/x/text catalogue, and are found by stable message
// identifiers. What a language lacks is answered in English. A tenant may offer
// fewer languages, and have texts of its own.
//
// It follows
//
//   - RFC 2640, section 4: the argument of LANG (4.2), the tags in FEAT (4.3)
//     and English in ASCII as the default (4.1)
//   - BCP 47 (RFC 5646, RFC 4647), the successor of RFC 1766: language tags and
//     their matching, by golang.org/x/text/language
//   - RFC 2277, section 4: the default language is understood by a reader of
//     English
//   - RFC 3629, the successor of RFC 2279: which bytes are UTF-8; U+FEFF stays,
//     because a pathname is not the start of a stream
//   - RFC 2640, section 3.1 and annex B.3: names that are UTF-8 are taken as such,
//     others as the charset that is configured, and a name that the charset lacks
//     is sent in UTF-8
//   - draft-ietf-ftpext-intl-ftp-00, sections 3.1 and 3.1.1: the strategies of a
//     server that is told its charset, for directories that have one of their
//     own, and of a mirror, which keeps the bytes
//   - the WHATWG's Encoding Standard: the labels of charsets, and what they mean
//     to the systems that use them
package i18n
