// Package i18n holds the texts of the server in every language, and chooses the language for a reader. It renders texts
// and never writes to a connection.
//
// A [Bundle] has all languages. [Load] reads it once, from the catalogues of package locales and from folders of the
// operator. A [Localizer] renders texts in one language, or in the language of one tenant. An [ID] names a message, and
// stays the same when its English text is reworded.
//
//	bundle, err := i18n.Load()                    // at the start
//	match, err := bundle.Negotiate("fr-CA")       // LANG fr-CA
//	text := bundle.Localizer(match.Tag).Text(i18n.Goodbye)
//
// A lookup takes these steps:
//   - Negotiate compares what the client asks for with the languages that are offered, and returns the closest one as a
//     [Match], or an error. A tenant may offer fewer languages.
//   - Localizer returns the texts of that language, as one complete map: each text is from the tenant
//     ([Bundle.WithOverrides]), otherwise from the language or its parent, otherwise from English.
//   - Text finds the message in the map, and fills in its arguments.
//
// A catalogue is in the JSON syntax of golang.org/x/text/cmd/gotext. Load also reads what translation tools write, such
// as translate-toolkit, the library of Weblate. [Format] writes catalogues in one layout, and [Lint] reports their
// mistakes.
//
// It follows
//
//   - RFC 2640, section 4: the argument of LANG (4.2), the tags in FEAT (4.3)
//     and English in ASCII as the default (4.1)
//   - BCP 47 (RFC 5646, RFC 4647), the successor of RFC 1766: language tags and
//     their matching, by golang.org/x/text/language
//   - RFC 2277, section 4: readers of English understand the default language
package i18n
