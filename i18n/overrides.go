package i18n

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"
)

// WithOverrides returns a bundle for one tenant. It offers these languages only, in
// this order, or all of b if there are none. Readers of any other language get the
// first one. These texts replace those of the catalogues, which b shares.
//
// The texts count like an overlay that is loaded last. A text is for the language
// that it is given for, and for the variants of it that have no text. Readers of
// other languages keep the text of the catalogue, because they may not read the
// language of the tenant's. A message that a language lacks is answered in English,
// with the tenant's English text if there is one. A text is checked as a catalogue
// is. One that is wrong does not count; see Refused.
//
// A language may be given as a relative of one that b has: pt for pt-BR. The error
// joins what is wrong with the languages, each with what to do.
func (b *Bundle) WithOverrides(languages []language.Tag, texts map[ID]map[language.Tag]Text) (*Bundle, error) {
	tags, err := b.restrict(languages)
	if err != nil {
		return nil, err
	}
	t := &Bundle{
		tags:       tags,
		matcher:    language.NewMatcher(tags),
		sources:    b.sources,
		texts:      maps.Clone(b.texts),
		localizers: make(map[language.Tag]func() *Localizer, len(tags)),
	}
	for _, tag := range tags {
		t.localizers[tag] = b.localizers[tag] // for Match
	}
	t.setOverrides(texts)
	if len(texts) == 0 {
		return t, nil
	}
	for _, tag := range tags {
		t.localizers[tag] = sync.OnceValue(func() *Localizer {
			shared := b.localizers[tag]()
			if l := t.newLocalizer(tag); !maps.Equal(l.texts, shared.texts) {
				return l
			}
			return shared
		})
	}
	return t, nil
}

// restrict returns the languages of b that match these, or all of them.
func (b *Bundle) restrict(languages []language.Tag) ([]language.Tag, error) {
	if len(languages) == 0 {
		return b.Tags(), nil
	}
	var tags []language.Tag
	var errs []error
	for _, want := range languages {
		switch tag, ok := b.Match(want); {
		case !ok:
			errs = append(
				errs, fmt.Errorf(
					"there is no catalogue for the language %s; write one of %s, or remove it", want, listTags(b.tags)))
		case slices.Contains(tags, tag):
			errs = append(
				errs, fmt.Errorf(
					"the language %s is offered as %s, which is in the list already; remove one", want, tag))
		default:
			tags = append(tags, tag)
		}
	}
	return tags, errors.Join(errs...)
}

// setOverrides adds a tenant's texts that are right, and notes what is wrong with the others.
func (b *Bundle) setOverrides(texts map[ID]map[language.Tag]Text) {
	own := make(map[language.Tag]map[ID]*text)
	for _, id := range slices.Sorted(maps.Keys(texts)) {
		source, known := b.sources[id]
		switch {
		case !known:
			b.refuse(id, language.Und, "no such message; %s", adviseID(b.sources, id))
		case !id.InReply():
			b.refuse(
				id, language.Und,
				"is for administrators, and all tenants share it; put the text into a catalogue")
		case len(texts[id]) == 0:
			b.refuse(id, language.Und, "has no texts; write one for a language, or remove the message")
		default:
			b.setOverride(own, id, source, texts[id])
		}
	}
	for tag, texts := range own {
		b.texts[tag] = b.texts[tag].with(texts)
	}
}

// setOverride adds those of the tenant's texts of one message that are right to own.
func (b *Bundle) setOverride(
	own map[language.Tag]map[ID]*text, id ID, source source, texts map[language.Tag]Text,
) {
	given := make(map[language.Tag]language.Tag) // the tags of the texts, by the languages that they match
	for _, want := range slices.SortedFunc(maps.Keys(texts), compareTags) {
		tag, ok := b.Match(want)
		if !ok {
			b.refuse(id, want, "the language is not offered; write one of %s, or remove the text", listTags(b.tags))
			continue
		}
		if other, ok := given[tag]; ok {
			b.refuse(id, want, "the texts for %s and %s are both for %s; remove one", other, want, tag)
			continue
		}
		given[tag] = want
		problems := source.checkOverride(id, tag, texts[want])
		for _, problem := range problems {
			b.refuse(id, want, "%s", problem)
		}
		if len(problems) > 0 {
			continue
		}
		if own[tag] == nil {
			own[tag] = make(map[ID]*text)
		}
		own[tag][id] = &text{texts[want], tag, source.parameters}
	}
}

// refuse notes what is wrong with a tenant's text, or with all texts of a message.
func (b *Bundle) refuse(id ID, tag language.Tag, format string, args ...any) {
	b.refused = append(b.refused, Diagnostic{Message: id, Language: tag, Problem: fmt.Sprintf(format, args...)})
}

// checkOverride returns what is wrong with a tenant's text. Only the server checks
// its plural forms.
func (s source) checkOverride(id ID, tag language.Tag, t Text) []string {
	problems := s.check(id, tag, t)
	if len(problems) == 0 && t.Select != nil {
		problems = checkForms(t.Select.Cases, t.Select.Arg, numbersByForm(tag))
	}
	return problems
}

func listTags(tags []language.Tag) string {
	names := make([]string, len(tags))
	for i, tag := range tags {
		names[i] = tag.String()
	}
	return strings.Join(names, ", ")
}

// adviseID suggests the identifiers that contain an unknown one, whatever its hyphens and capitals.
func adviseID(sources map[ID]source, id ID) string {
	const few, least = 3, 3 // identifiers, letters
	fold := func(id ID) string { return strings.ReplaceAll(strings.ToLower(string(id)), "-", "") }
	var names []string
	for _, other := range slices.Sorted(maps.Keys(sources)) {
		if len(id) >= least && id.InReply() == other.InReply() && strings.Contains(fold(other), fold(id)) {
			names = append(names, fmt.Sprintf("%q", other))
		}
	}
	if len(names) == 0 {
		return "take the identifiers from the English catalogue"
	}
	return "is it " + strings.Join(names[:min(few, len(names))], " or ") + "?"
}
