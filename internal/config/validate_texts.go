package config

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config/rule"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// languages checks which languages a tenant offers, and that its own is one of them.
func (v *validator) languages(p yamlconf.Path, t *Tenant) {
	list, own := p.Child("languages"), p.Child("default_language")
	if t.Languages != nil && len(t.Languages) == 0 {
		v.report(list, "there are none: write one at least, or remove the key for all of them")
	}
	known := true
	for i, tag := range t.Languages {
		known = v.language(list.Child(strconv.Itoa(i)), tag) && known
	}
	if t.DefaultLanguage != language.Und {
		known = v.language(own, t.DefaultLanguage) && known
	}
	if !known || v.bundle == nil || len(t.Languages) == 0 {
		return
	}
	offered, err := v.bundle.WithOverrides(t.Languages, nil)
	if err != nil { // two of them are one
		v.report(list, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		return
	}
	if _, ok := offered.Match(t.DefaultLanguage); !ok && t.DefaultLanguage != language.Und {
		v.report(own, "%s is none of the tenant's languages: add it to them, or write one that is there", t.DefaultLanguage)
	}
}

// texts checks a greeting or a welcome.
func (v *validator) texts(p yamlconf.Path, texts map[language.Tag]string) {
	for tag, text := range texts {
		at := p.Child(tag.String())
		v.language(at, tag)
		for _, problem := range rule.Greeting(text) {
			v.report(at, "%s", problem)
		}
	}
}

// messages checks what a tenant says instead of the catalogues, text by text, so that each problem stands where its text does.
func (v *validator) messages(p yamlconf.Path, t *Tenant) {
	if v.bundle == nil || len(t.Messages) == 0 {
		return
	}
	offered, err := v.bundle.WithOverrides(t.Languages, nil)
	if err != nil {
		offered = v.bundle // said before
	}
	check := func(at yamlconf.Path, id i18n.ID, texts map[language.Tag]string) bool {
		_, err := offered.WithOverrides(nil, map[i18n.ID]map[language.Tag]string{id: texts})
		if err != nil {
			v.report(at, "%s", err)
		}
		return err == nil
	}
	for id, texts := range t.Messages {
		at := p.Child(string(id))
		if known := v.bundle.IDs(); !slices.Contains(known, id) {
			v.report(at, "no such message: %s", yamlconf.Suggest(string(id), known, "take the identifiers from the English catalogue"))
			continue
		}
		if len(texts) == 0 {
			v.report(at, "there are no texts: write one for a language, or remove the message")
		}
		each := true
		for tag, text := range texts {
			each = check(at.Child(tag.String()), id, map[language.Tag]string{tag: text}) && each
		}
		if each {
			check(at, id, texts) // two of them may be for one language
		}
	}
}
