// Package i18n keeps the texts of the server in every language and chooses the
// language for a reader. It renders texts and never writes to a connection.
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
package i18n
