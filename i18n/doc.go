// Package i18n keeps the texts of the server in every language and chooses the
// language for a reader. It renders texts and never writes to a connection.
//
// Texts come from the catalogues of package locales and from folders of the
// operator. Each Localizer has one map of all messages, by stable identifiers: the
// text of the tenant, else of the language or its parent, else of English. A tenant
// may offer fewer languages.
//
// A catalogue is in the JSON syntax of golang.org/x/text/cmd/gotext. [Load] reads
// what translation tools write, such as translate-toolkit, the library of Weblate, and
// [formatFile] writes files in one layout.
//
//	bundle, err := i18n.Load()                    // at the start
//	match, err := bundle.Negotiate("fr-CA")       // LANG fr-CA
//	text := bundle.Localizer(match.Tag).Text(i18n.Goodbye)
//
// It follows
//
//   - RFC 2640, section 4: the argument of LANG (4.2), the tags in FEAT (4.3)
//     and English in ASCII as the default (4.1)
//   - BCP 47 (RFC 5646, RFC 4647), the successor of RFC 1766: language tags and
//     their matching, by golang.org/x/text/language
//   - RFC 2277, section 4: readers of English understand the default language
package i18n
