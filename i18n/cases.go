package i18n

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
)

// Cases are the texts of a select by selector: a plural form of CLDR, or a number
// such as =1. No text is empty.
type Cases map[string]string

// Forms returns the plural forms of CLDR, in the order in which catalogues show them.
func Forms() []string { return []string{"zero", "one", "two", "few", "many", "other"} }

var numberSelector = regexp.MustCompile(`^=(?:0|[1-9]\d*)$`)

// isNumber reports whether a selector is a number such as =1, which gotext allows next
// to the plural forms.
func isNumber(selector string) bool { return numberSelector.MatchString(selector) }

// Selectors returns the selectors in the order in which catalogues show them: numbers,
// then the plural forms.
func (c Cases) Selectors() []string {
	forms := Forms()
	rank := func(selector string) int { return slices.Index(forms, selector) }
	return slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
}

// UnmarshalJSON reads the cases. Tools write an empty text for a form that a translator
// has left out. Some of them know newer plural rules than this server, give the forms
// by their position, and so leave the last text in many: it is other.
func (c *Cases) UnmarshalJSON(data []byte) error {
	var texts map[string]Text
	if err := json.Unmarshal(data, &texts); err != nil {
		return err
	}
	*c = make(Cases, len(texts))
	for selector, text := range texts {
		if text.Select != nil {
			return errors.New("a form of a select is a select itself; make it a plain text")
		}
		if text.Msg != "" {
			(*c)[selector] = text.Msg
		}
	}
	if many, ok := (*c)["many"]; ok && (*c)["other"] == "" {
		(*c)["other"] = many
	}
	return nil
}

// MarshalJSON writes the cases in their order, each as {"msg": "text"}, which
// translate-toolkit wants.
func (c Cases) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, selector := range c.Selectors() {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := marshal(selector)
		if err != nil {
			return nil, err
		}
		text, err := marshal(textObject{Msg: c[selector]})
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
