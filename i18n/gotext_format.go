package i18n

import (
	"bytes"
	"encoding/json"
	"reflect"

	"golang.org/x/text/language"
)

// formatFile encodes a catalog in the layout of the embedded ones: messages in the order of the English
// catalog, followed by unknown ones. English texts, placeholders and comments for translators are only kept
// in the English catalog. A translation is marked fuzzy if its "message" differs from the current English
// text.
func formatFile(f, english File) ([]byte, error) {
	tag, err := language.Parse(f.Language)
	if err != nil {
		return nil, err
	}
	numbers := numbersByForm(tag)
	byID := make(map[string][]Message)
	for _, m := range f.Messages {
		byID[m.ID] = append(byID[m.ID], m)
	}
	out := File{Language: f.Language, Messages: make([]Message, 0, len(f.Messages))}
	for _, source := range english.Messages {
		for _, m := range byID[source.ID] {
			changed := !m.Message.IsZero() && !reflect.DeepEqual(m.Message, source.Message)
			m.Fuzzy = m.Fuzzy || changed && !m.Translation.IsZero()
			m.Message, m.Placeholders = source.Message, source.Placeholders
			if f.Language != english.Language {
				m.Message, m.Placeholders = Text{}, nil
				if m.TranslatorComment == source.TranslatorComment {
					m.TranslatorComment = ""
				}
			}
			m.Translation.takeArg(source.Translation)
			m.Translation.dropMany(numbers)
			out.Messages = append(out.Messages, m)
		}
		delete(byID, source.ID)
	}
	for _, m := range f.Messages {
		if _, unknown := byID[m.ID]; unknown {
			out.Messages = append(out.Messages, m)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(out)
	return b.Bytes(), err
}

// takeArg adds the argument of the English text to a select without an argument. translate-toolkit only finds
// the argument in placeholders.
func (t *Text) takeArg(english Text) {
	if t.Select != nil && t.Select.Arg == "" && english.Select != nil {
		t.Select.Arg = english.Select.Arg
	}
}

// dropMany removes the form "many" if it equals "other" and the language does not have the form. Tools with
// newer plural rules write it.
func (t *Text) dropMany(numbers map[string][]int) {
	if t.Select == nil || len(numbers["many"]) > 0 {
		return
	}
	if cases := t.Select.Cases; cases["many"] == cases["other"] {
		delete(cases, "many")
	}
}
