package i18n

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
)

// A File is the content of a catalog.
type File struct {
	Language string    `json:"language"`
	Messages []Message `json:"messages"`
}

// A Message is a text and its translation. This package only uses some of the fields; gotext and translation
// tools write the others. Decoding rejects unknown fields, to catch misspelled ones.
type Message struct {
	ID                string        `json:"id"`
	Message           Text          `json:"message,omitzero"` // in English
	Translation       Text          `json:"translation"`
	TranslatorComment string        `json:"translatorComment,omitempty"`
	Comment           string        `json:"comment,omitempty"`
	Key               string        `json:"key,omitempty"`
	Meaning           string        `json:"meaning,omitempty"`
	Fuzzy             bool          `json:"fuzzy,omitempty"` // needs another review
	Position          string        `json:"position,omitempty"`
	Placeholders      []Placeholder `json:"placeholders,omitempty"`

	Line, Column int `json:"-"` // in the file, starting at 1
}

// A Placeholder is a {Name} in a text that an argument replaces.
type Placeholder struct {
	ID             string            `json:"id"`
	String         string            `json:"string"`
	Type           string            `json:"type"`
	UnderlyingType string            `json:"underlyingType"`
	ArgNum         int               `json:"argNum,omitempty"`
	Expr           string            `json:"expr,omitempty"`
	Comment        string            `json:"comment,omitempty"`
	Example        string            `json:"example,omitempty"`
	Features       []json.RawMessage `json:"features,omitempty"`
}

// UnmarshalJSON decodes a message. gotext writes a list of identifiers, of which the first one is the
// identifier of the message.
func (m *Message) UnmarshalJSON(data []byte) error {
	type object Message // drops this method
	err := unmarshalStrict(data, (*object)(m))
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) || wrong.Field != "id" || wrong.Value != "array" {
		return err
	}
	other := struct {
		ID []string `json:"id"` // hides the string field
		*object
	}{object: (*object)(m)}
	if err := unmarshalStrict(data, &other); err != nil {
		return err
	}
	if len(other.ID) == 0 {
		return err
	}
	m.ID = other.ID[0]
	return nil
}

// A Text is a plain string, or one string for each plural form.
type Text struct {
	Msg    string
	Select *Select
}

// A Select chooses a text by the plural form of an argument.
type Select struct {
	Feature string `json:"feature"`
	Arg     string `json:"arg"`
	Cases   Cases  `json:"cases"`
}

// IsZero reports whether the text is missing.
func (t Text) IsZero() bool { return t.Msg == "" && t.Select == nil }

// textObject is the encoding of a Text as an object. gotext writes examples for translators.
type textObject struct {
	Msg     string                     `json:"msg,omitempty"`
	Select  *Select                    `json:"select,omitempty"`
	Var     map[string]json.RawMessage `json:"var,omitempty"`
	Example string                     `json:"example,omitempty"`
}

// UnmarshalJSON decodes both forms that gotext writes: "text" and {"msg": "text"}. A select with only empty
// forms, which tools write for a missing text, is treated as missing.
func (t *Text) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return json.Unmarshal(data, &t.Msg)
	}
	var object textObject
	if err := unmarshalStrict(data, &object); err != nil {
		return err
	}
	if len(object.Var) > 0 {
		return errors.New(`"var" is not supported; write the whole text into each form`)
	}
	t.Msg, t.Select = object.Msg, object.Select
	if t.Select != nil && len(t.Select.Cases) == 0 {
		t.Select = nil
	}
	return nil
}

// String returns a plain text.
func (t Text) String() string { return t.Msg }

// UnmarshalText sets a plain text.
func (t *Text) UnmarshalText(text []byte) error {
	*t = Text{Msg: string(text)}
	return nil
}

// MarshalJSON encodes a plain text as a string.
func (t Text) MarshalJSON() ([]byte, error) {
	if t.Select == nil {
		return marshal(t.Msg)
	}
	return marshal(textObject{Select: t.Select})
}

// unmarshalStrict is like json.Unmarshal, but rejects unknown fields.
func unmarshalStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// marshal is like json.Marshal, but does not escape < > &.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// All yields each text with its selector, which is empty for a text without plural forms.
func (t Text) All() iter.Seq2[string, string] {
	return func(yield func(selector, text string) bool) {
		if t.Select == nil {
			if t.Msg != "" {
				yield("", t.Msg)
			}
			return
		}
		for _, selector := range t.Select.Cases.Selectors() {
			if !yield(selector, t.Select.Cases[selector]) {
				return
			}
		}
	}
}

// Has reports whether one of the texts equals want.
func (t Text) Has(want string) bool {
	for _, text := range t.All() {
		if text == want {
			return true
		}
	}
	return false
}
