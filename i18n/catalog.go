package i18n

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/text/language"
)

// fileName is the name that gotext and translation tools use for a catalog.
const fileName = "messages.gotext.json"

var errNoCatalog = fmt.Errorf(
	"no <language tag>/%s in the catalog directory; add one, such as fr/%[1]s", fileName)

// A catalog is a file in the JSON syntax of gotext, with the problems found so far.
type catalog struct {
	name        string // name of the file
	tag         language.Tag
	file        File
	diagnostics []Diagnostic
}

// readCatalog reads and decodes <folder>/messages.gotext.json. Messages that cannot be decoded are left out
// and get a diagnostic.
func readCatalog(fsys fs.FS, folder string) *catalog {
	c := &catalog{name: path.Join(folder, fileName)}
	tag, err := language.Parse(folder)
	if err != nil || tag == language.Und || tag.String() != folder {
		c.errorf(
			Message{}, "invalid language tag %q; name the directory by a BCP 47 tag such as fr, pt-BR or zh-Hans",
			folder)
		return c
	}
	if strings.ContainsAny(folder, "0123456789") {
		c.errorf(Message{}, "FEAT cannot show %q, because RFC 2640 allows letters only; use another tag", folder)
		return c
	}
	c.tag = tag
	data, err := fs.ReadFile(fsys, c.name)
	if err != nil {
		c.errorf(Message{}, "cannot be read: %v", err)
		return c
	}
	file, problems := parseFile(data)
	for _, p := range problems {
		c.errorf(Message{ID: p.ID, Line: p.Line, Column: p.Column}, "%s", p.Text)
	}
	if file.Language != c.tag.String() && (file.Language != "" || len(problems) == 0) {
		c.errorf(Message{}, `"language" is %q; write %q, the name of the directory`, file.Language, c.tag)
	}
	c.file = file
	return c
}

// lineOf returns the line of a message, or 0 if the file does not have it.
func (c *catalog) lineOf(id ID) int {
	for _, m := range c.file.Messages {
		if m.ID == string(id) {
			return m.Line
		}
	}
	return 0
}
