package admin

import (
	"fmt"
	"slices"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
)

// A view is the data of the template.
type view struct {
	Lang, Dir string // attributes of html
	Texts     data   // for the script
	Screens   []string
	Languages []choice
}

// data is the JSON in the page that the script reads.
type data struct {
	Lang  string             `json:"lang"`
	Texts map[i18n.ID]string `json:"texts"`
}

// A choice is a language in the menu.
type choice struct {
	Tag, Name string
	Dir       string
	Chosen    bool
}

func newView(b *i18n.Bundle, tag language.Tag) *view {
	v := &view{Lang: tag.String(), Dir: direction(tag), Texts: data{tag.String(), b.PageTexts(tag)}, Screens: screens()}
	for _, c := range b.Completeness() {
		v.Languages = append(v.Languages, choice{c.Tag.String(), c.Name, direction(c.Tag), c.Tag == tag})
	}
	return v
}

// direction returns the writing direction of a language, as a value for the HTML attribute dir.
func direction(tag language.Tag) string {
	rightToLeft := []string{"Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Syrc", "Thaa"}
	if script, _ := tag.Script(); slices.Contains(rightToLeft, script.String()) {
		return "rtl"
	}
	return "ltr"
}

// T returns the text page-NAME.
func (v *view) T(name string) (string, error) {
	text, ok := v.Texts.Texts[i18n.ID("page-"+name)]
	if !ok {
		return "", fmt.Errorf("the catalogs have no text page-%s", name)
	}
	return text, nil
}
