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

// WithOverrides returns a bundle for one tenant. It offers the given languages in this order, or all of b if
// languages is empty. Readers of any other language get the first one. The texts replace texts of the
// catalogs, which the bundle shares with b.
//
// The texts work like an overlay that is loaded last. A text applies to its language and to variants of the
// language that have no text. Readers of other languages keep the text of the catalog, because they may not
// read the language of the tenant's text. If a language lacks a message, it falls back to English, including
// the tenant's English text. Texts are checked like catalogs. Invalid ones are ignored; see Refused.
//
// A language may be given as a relative of a language in b, such as pt for pt-BR. The error joins the
// problems with the languages, each with advice.
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
		t.localizers[tag] = b.localizers[tag] // so that Match works
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

// restrict returns the languages of b that match the given ones, or all if none are given.
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
					"no catalog for the language %s; use one of %s, or remove it", want, listTags(b.tags)))
		case slices.Contains(tags, tag):
			errs = append(
				errs, fmt.Errorf(
					"the language %s is offered as %s, which is already in the list; remove one", want, tag))
		default:
			tags = append(tags, tag)
		}
	}
	return tags, errors.Join(errs...)
}

// setOverrides adds the valid texts of a tenant, and records the problems of the others.
func (b *Bundle) setOverrides(texts map[ID]map[language.Tag]Text) {
	own := make(map[language.Tag]map[ID]*text)
	for _, id := range slices.Sorted(maps.Keys(texts)) {
		source, known := b.sources[id]
		switch {
		case !known:
			b.refuse(id, language.Und, "unknown message; %s", adviseID(b.sources, id))
		case !id.InReply():
			b.refuse(
				id, language.Und,
				"is only for administrators; put the text into a catalog, which all tenants share")
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

// setOverride adds the valid texts of one message to own.
func (b *Bundle) setOverride(
	own map[language.Tag]map[ID]*text, id ID, source source, texts map[language.Tag]Text,
) {
	given := make(map[language.Tag]language.Tag) // the tag of each text, by the language that it matches
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

// refuse records a problem with a tenant's text, or with all texts of a message.
func (b *Bundle) refuse(id ID, tag language.Tag, format string, args ...any) {
	b.refused = append(b.refused, Diagnostic{Message: id, Language: tag, Problem: fmt.Sprintf(format, args...)})
}

// checkOverride returns the problems of a tenant's text. Plural forms are checked here, because nobody runs
// Lint on these texts.
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

// adviseID suggests identifiers that contain the unknown one, ignoring hyphens and case.
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
		return "take the identifiers from the English catalog"
	}
	return "is it " + strings.Join(names[:min(few, len(names))], " or ") + "?"
}
