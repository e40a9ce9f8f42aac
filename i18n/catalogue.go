package i18n

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"unicode/utf8"

	"golang.org/x/text/language"
)

// fileName is what gotext and translation tools call a catalogue.
const fileName = "messages.gotext.json"

// A catalogue is one file in gotext's JSON format.
type catalogue struct {
	name    string // of the file, for errors
	tag     language.Tag
	entries []entry
}

// An entry is one message of a catalogue. The fields that no code reads are
// there because gotext writes them: any other name is a spelling mistake.
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

// readCatalogue reads and decodes <folder>/messages.gotext.json. An error names
// the file and, within it, the line or the message.
func readCatalogue(fsys fs.FS, folder string) (catalogue, error) {
	c := catalogue{name: path.Join(folder, fileName)}
	tag, err := language.Parse(folder)
	if err != nil || tag.String() != folder {
		return c, fmt.Errorf("%s: %q is not a language tag as BCP 47 writes it; name the folder like fr, pt-BR or zh-Hans", c.name, folder)
	}
	c.tag = tag
	data, err := fs.ReadFile(fsys, c.name)
	if err != nil {
		return c, fmt.Errorf("reading a catalogue: %w", err)
	}
	if err := c.decode(data); err != nil {
		return c, err
	}
	return c, nil
}

func (c *catalogue) decode(data []byte) error {
	// Editors on Windows put U+FEFF first.
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		// encoding/json would put U+FFFD into the texts.
		return fmt.Errorf("%s: is not UTF-8; save it in this encoding", c.name)
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, new(json.RawMessage)); errors.As(err, &syntax) {
		line := 1 + bytes.Count(data[:syntax.Offset], []byte("\n"))
		return fmt.Errorf("%s:%d: is not JSON: %w; correct it there or just before", c.name, line, err)
	}
	var file struct {
		Language string            `json:"language"`
		Messages []json.RawMessage `json:"messages"`
	}
	if err := unmarshalStrict(data, &file); err != nil {
		return fmt.Errorf("%s: %w; see the English catalogue for the form", c.name, err)
	}
	if file.Language != c.tag.String() {
		return fmt.Errorf(`%s: "language" is %q; write %q, the name of the folder`, c.name, file.Language, c.tag)
	}
	var errs []error
	for i, raw := range file.Messages {
		var e entry
		if err := unmarshalStrict(raw, &e); err != nil {
			errs = append(errs, fmt.Errorf("%s: message %s: %w; see the English catalogue for the form", c.name, describe(raw, i), err))
			continue
		}
		c.entries = append(c.entries, e)
	}
	return errors.Join(errs...)
}

// describe names a message that does not decode: by its identifier if it has
// one, else by its place in the file.
func describe(raw json.RawMessage, index int) string {
	var e struct{ ID string }
	if json.Unmarshal(raw, &e) == nil && e.ID != "" {
		return fmt.Sprintf("%q", e.ID)
	}
	return fmt.Sprintf("number %d", index+1)
}

// unmarshalStrict is json.Unmarshal that refuses unknown fields.
func unmarshalStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
