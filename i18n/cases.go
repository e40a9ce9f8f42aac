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

// Cases maps the selectors of a select to texts. A selector is a plural form of CLDR, or a number such as =1.
// Texts are not empty.
type Cases map[string]string

// Forms returns the plural forms of CLDR, in the order used in catalogs.
func Forms() []string { return []string{"zero", "one", "two", "few", "many", "other"} }

var numberSelector = regexp.MustCompile(`^=(?:0|[1-9]\d*)$`)

// isNumber reports whether a selector is a number such as =1, which gotext allows in addition to plural
// forms.
func isNumber(selector string) bool { return numberSelector.MatchString(selector) }

// Selectors returns the selectors in the order used in catalogs: numbers first, then plural forms.
func (c Cases) Selectors() []string {
	forms := Forms()
	rank := func(selector string) int { return slices.Index(forms, selector) }
	return slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
}

// UnmarshalJSON decodes the cases. Tools write an empty text for a form without a translation. Tools with
// newer plural rules than x/text identify forms by position, and put the last text into "many" instead of
// "other".
func (c *Cases) UnmarshalJSON(data []byte) error {
	var texts map[string]Text
	if err := json.Unmarshal(data, &texts); err != nil {
		return err
	}
	*c = make(Cases, len(texts))
	for selector, text := range texts {
		if text.Select != nil {
			return errors.New("nested select in a form; write plain text")
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

// MarshalJSON encodes the cases in order, each as {"msg": "text"}, because translate-toolkit requires this
// form.
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
