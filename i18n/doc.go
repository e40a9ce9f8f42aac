// Package i18n holds the texts of the server in all languages and selects a language for each reader. It
// renders texts, and does not send them.
//
// A [Bundle] holds all languages. [Load] reads it once, from the embedded catalogs of package locales and
// from directories of the operator. A [Localizer] renders texts in one language, with the texts of a tenant
// if it has its own. An [ID] identifies a message, and stays the same when the English text changes.
//
//	bundle, err := i18n.Load()                    // at the start
//	match, err := bundle.Negotiate("fr-CA")       // LANG fr-CA
//	text := bundle.Localizer(match.Tag).Text(i18n.Goodbye)
//
// A lookup takes these steps:
//   - Negotiate matches the requested language against the offered ones, and returns the closest one as a [Match], or
//     an error. A tenant may offer fewer languages than the server.
//   - Localizer returns the texts of that language as a complete map. Each text comes from the tenant
//     ([Bundle.WithOverrides]), or else from the language or its parent, or else from English.
//   - Text looks up the message and fills in its arguments.
//
// A catalog uses the JSON syntax of golang.org/x/text/cmd/gotext. Load also accepts the output of translation
// tools such as translate-toolkit, the library of Weblate. [Format] writes catalogs in a standard layout, and
// [Lint] reports their problems.
//
// The package follows these specifications:
//
//   - RFC 2640, section 4: the argument of LANG (4.2), the tags in FEAT (4.3)
//     and English in ASCII as the default (4.1)
//   - BCP 47 (RFC 5646, RFC 4647), the successor of RFC 1766: language tags and
//     their matching, by golang.org/x/text/language
//   - RFC 2277, section 4: readers of English understand the default language
package i18n
