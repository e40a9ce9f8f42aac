// Package locales holds the languages: one folder each, named by its language tag
// (BCP 47). A folder has the texts in gotext's JSON format, which translation tools
// read and write, and the rules that babelftp languages --lint checks them by.
// English is the source of the others.
package locales

import (
	"embed"
	"io/fs"
	"path"
)

//go:embed */messages.gotext.json */language.yaml
var folders embed.FS

// FS returns the folders, with <tag>/messages.gotext.json and <tag>/language.yaml.
func FS() fs.FS { return folders }

// Tags returns the languages there are, as their folders are called. English is the
// first: it is the default (RFC 2640, 4.1), and what a matcher chooses when nothing
// fits. The others are in alphabetical order.
func Tags() []string {
	tags := []string{"en"}
	files, err := fs.Glob(folders, "*/messages.gotext.json")
	if err != nil {
		panic(err) // only for a pattern that is wrong
	}
	for _, file := range files {
		if tag := path.Dir(file); tag != "en" {
			tags = append(tags, tag)
		}
	}
	return tags
}
