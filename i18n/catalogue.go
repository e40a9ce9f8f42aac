package i18n

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/text/language"
)

// fileName is what gotext and translation tools call a catalogue.
const fileName = "messages.gotext.json"

var errNoCatalogue = fmt.Errorf(
	"there is no <language tag>/%s in the folder of catalogues; add one, such as fr/%[1]s", fileName)

// A catalogue is one file in gotext's JSON syntax, and its problems so far.
type catalogue struct {
	name        string // of the file
	tag         language.Tag
	file        File
	diagnostics []Diagnostic
}

// readCatalogue reads and decodes <folder>/messages.gotext.json. It leaves out
// messages that do not decode, and adds a diagnostic for each.
func readCatalogue(fsys fs.FS, folder string) *catalogue {
	c := &catalogue{name: path.Join(folder, fileName)}
	tag, err := language.Parse(folder)
	if err != nil || tag == language.Und || tag.String() != folder {
		c.errorf(
			Message{}, "%q is not a language tag as BCP 47 writes it; name the folder like fr, pt-BR or zh-Hans",
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
		c.errorf(Message{}, `"language" is %q; write %q, the name of the folder`, file.Language, c.tag)
	}
	c.file = file
	return c
}

// lineOf returns the line of a message, or 0 where the file does not have it.
func (c *catalogue) lineOf(id ID) int {
	for _, m := range c.file.Messages {
		if m.ID == string(id) {
			return m.Line
		}
	}
	return 0
}
