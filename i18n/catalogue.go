package i18n

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/language"
)

// fileName is what gotext and translation tools call a catalogue.
const fileName = "messages.gotext.json"

// A catalogue is one file in gotext's JSON format, and its problems so far.
type catalogue struct {
	name        string // of the file
	tag         language.Tag
	entries     []entry
	diagnostics []Diagnostic
}

// An entry is one message of a catalogue. No code reads some of the fields, but
// gotext writes them. Any other name is a spelling mistake.
type entry struct {
	ID                ID            `json:"id"`
	Key               string        `json:"key"`
	Meaning           string        `json:"meaning"`
	Message           text          `json:"message"`
	Translation       text          `json:"translation"`
	Comment           string        `json:"comment"`
	TranslatorComment string        `json:"translatorComment"`
	Placeholders      []placeholder `json:"placeholders"`
	Fuzzy             bool          `json:"fuzzy"`
	Position          string        `json:"position"`

	line int // of the file
}

// A placeholder is a {Name} that a text has in place of an argument.
type placeholder struct {
	ID             string `json:"id"`
	String         string `json:"string"`
	Type           string `json:"type"`
	UnderlyingType string `json:"underlyingType"`
	ArgNum         int    `json:"argNum"`
	Expr           string `json:"expr"`
	Comment        string `json:"comment"`
	Example        string `json:"example"`
}

// A text is a plain string, or one string for each plural form.
type text struct {
	Msg    string     `json:"msg"`
	Select *selection `json:"select"`
}

// A selection chooses a text by the plural form of an argument.
type selection struct {
	Feature string          `json:"feature"`
	Arg     string          `json:"arg"`
	Cases   map[string]text `json:"cases"`
}

// UnmarshalJSON reads both forms that gotext writes: "text" and {"msg": "text"}.
func (t *text) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return json.Unmarshal(data, &t.Msg)
	}
	type object text // without this method
	return unmarshalStrict(data, (*object)(t))
}

func (t text) empty() bool { return t.Msg == "" && t.Select == nil }

// readCatalogue reads and decodes <folder>/messages.gotext.json. It leaves out
// messages that do not decode, and adds a diagnostic for each.
func readCatalogue(fsys fs.FS, folder string) *catalogue {
	c := &catalogue{name: path.Join(folder, fileName)}
	tag, err := language.Parse(folder)
	if err != nil || tag == language.Und || tag.String() != folder {
		c.errorf(entry{}, "%q is not a language tag as BCP 47 writes it; name the folder like fr, pt-BR or zh-Hans", folder)
		return c
	}
	if strings.ContainsAny(folder, "0123456789") {
		c.errorf(entry{}, "FEAT cannot show %q, because RFC 2640 allows letters only; use another tag", folder)
		return c
	}
	c.tag = tag
	data, err := fs.ReadFile(fsys, c.name)
	if err != nil {
		c.errorf(entry{}, "cannot be read: %v", err)
		return c
	}
	c.decode(data)
	return c
}

func (c *catalogue) decode(data []byte) {
	// Editors on Windows put U+FEFF first.
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		// encoding/json would put U+FFFD into the texts.
		c.errorf(entry{}, "is not UTF-8; save it in this encoding")
		return
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, new(json.RawMessage)); errors.As(err, &syntax) {
		c.errorf(entry{line: lineOf(data, int(syntax.Offset))}, "is not JSON: %v; correct it there or just before", err)
		return
	}
	var file struct {
		Language string            `json:"language"`
		Messages []json.RawMessage `json:"messages"`
	}
	if err := unmarshalStrict(data, &file); err != nil {
		c.errorf(entry{}, "%v; see the English catalogue for the form", err)
		return
	}
	if file.Language != c.tag.String() {
		c.errorf(entry{}, `"language" is %q; write %q, the name of the folder`, file.Language, c.tag)
	}
	offset := 0
	for i, raw := range file.Messages {
		offset += bytes.Index(data[offset:], raw)
		c.decodeEntry(raw, i+1, lineOf(data, offset))
		offset += len(raw)
	}
}

// decodeEntry adds a message. number is its place in the file, from 1.
func (c *catalogue) decodeEntry(raw json.RawMessage, number, line int) {
	e := entry{line: line}
	err := unmarshalStrict(raw, &e)
	switch {
	case err == nil:
		c.entries = append(c.entries, e)
	case e.ID == "":
		c.errorf(e, "message number %d: %v; see the English catalogue for the form", number, err)
	default:
		c.errorf(e, "%v; see the English catalogue for the form", err)
	}
}

// lineOf returns the number of the line that has an offset.
func lineOf(data []byte, offset int) int {
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}

// unmarshalStrict is json.Unmarshal, but refuses unknown fields.
func unmarshalStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
