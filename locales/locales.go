// Package locales embeds the languages. Each has a directory that is named by its language tag (BCP 47), with
// the texts in the JSON format of gotext, which translation tools read and write, and the rules that babelftp
// languages --lint checks. English is the source of all translations.
package locales

import (
	"embed"
	"io/fs"
	"path"
)

//go:embed */messages.gotext.json */language.yaml
var folders embed.FS

// FS returns the directories with <tag>/messages.gotext.json and <tag>/language.yaml.
func FS() fs.FS { return folders }

// Tags returns the languages by the names of their directories. English comes first, because it is the
// default (RFC 2640, 4.1) and the fallback of matchers. The others are sorted alphabetically.
func Tags() []string {
	tags := []string{"en"}
	files, err := fs.Glob(folders, "*/messages.gotext.json")
	if err != nil {
		panic(err) // only for an invalid pattern
	}
	for _, file := range files {
		if tag := path.Dir(file); tag != "en" {
			tags = append(tags, tag)
		}
	}
	return tags
}
