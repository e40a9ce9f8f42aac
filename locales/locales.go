// Package locales holds the message catalogues: one folder a language, named by
// its language tag (BCP 47), with a file in gotext's JSON format that
// translation tools read and write. English is the source of the others.
package locales

import (
	"embed"
	"io/fs"
)

//go:embed */messages.gotext.json
var catalogues embed.FS

// FS returns the catalogues, as <tag>/messages.gotext.json.
func FS() fs.FS { return catalogues }

// Tags returns the languages there are, as their folders are called, in the
// order in which clients and operators see them. English is the first: it is
// the default (RFC 2640, 4.1), and what a matcher chooses when nothing fits.
func Tags() []string {
	return []string{
		"en", "fr", "de", "es", "pt-BR", "ja", "zh-Hans", "ar", "ru",
		"it", "nl", "pl", "uk", "tr", "he", "hi", "ko", "zh-Hant", "vi", "id",
	}
}
