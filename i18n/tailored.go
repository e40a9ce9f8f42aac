package i18n

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

// Tailored returns a bundle for one tenant: it offers these languages only, in
// this order, and all of b where there are none; and it has these texts instead
// of the catalogues'. Its first language is for readers of all others. It shares
// the catalogues with b.
//
// The texts count as an overlay that is loaded last would. So a text is for the
// language it is given for, and for the variants of it that have no text of their
// own; readers of other languages keep the catalogue's, because a notice in
// their language serves them better than the tenant's in one that they may not
// read. A message that a language lacks is answered in English, with the tenant's
// text if it has one in English. A text has no plural forms, and is checked as a
// catalogue is.
//
// A language may be given as a relative of one that is there: pt for pt-BR. The
// error joins all that is wrong, each with the message, the language and what to
// do.
func (b *Bundle) Tailored(languages []language.Tag, texts map[ID]map[language.Tag]string) (*Bundle, error) {
	tags, err := b.offer(languages)
	if err != nil {
		return nil, err
	}
	t := &Bundle{
		tags:       tags,
		matcher:    language.NewMatcher(tags),
		localizers: make(map[language.Tag]*Localizer, len(tags)),
		sources:    b.sources,
		catalogued: b.catalogued,
		own:        make(map[language.Tag]map[ID]string),
	}
	for tag, texts := range b.own {
		t.own[tag] = maps.Clone(texts)
	}
	if err := t.setOwn(texts); err != nil {
		return nil, err
	}
	for _, tag := range tags {
		shared := b.localizers[tag]
		if l := t.newLocalizer(tag, shared.printer, shared.english); len(l.own) > 0 {
			t.localizers[tag] = l
		} else {
			t.localizers[tag] = shared
		}
	}
	return t, nil
}

// offer returns the languages that b calls by these names.
func (b *Bundle) offer(languages []language.Tag) ([]language.Tag, error) {
	if len(languages) == 0 {
		return b.Tags(), nil
	}
	var tags []language.Tag
	var errs []error
	for _, want := range languages {
		switch tag, ok := b.Find(want); {
		case !ok:
			errs = append(errs, fmt.Errorf("there is no catalogue for the language %s; write one of %s, or remove it", want, listTags(b.tags)))
		case slices.Contains(tags, tag):
			errs = append(errs, fmt.Errorf("the language %s is offered as %s, which is there already; remove one", want, tag))
		default:
			tags = append(tags, tag)
		}
	}
	return tags, errors.Join(errs...)
}

// setOwn checks a tenant's texts and adds them.
func (b *Bundle) setOwn(texts map[ID]map[language.Tag]string) error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(texts)) {
		source, ok := b.sources[id]
		if !ok {
			errs = append(errs, fmt.Errorf("message %q: no such message; %s", id, adviseID(b.sources, id)))
			continue
		}
		for _, problem := range b.setOwnMessage(id, source, texts[id]) {
			errs = append(errs, fmt.Errorf("message %q: %s", id, problem))
		}
	}
	return errors.Join(errs...)
}

// setOwnMessage does so for one message.
func (b *Bundle) setOwnMessage(id ID, source source, texts map[language.Tag]string) (problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	given := make(map[language.Tag]language.Tag) // as what, by the language that it is for
	for _, want := range slices.SortedFunc(maps.Keys(texts), compareTags) {
		tag, ok := b.Find(want)
		if !ok {
			problem("the language %s is not offered; write one of %s, or remove the text", want, listTags(b.tags))
			continue
		}
		if other, ok := given[tag]; ok {
			problem("the texts for %s and %s are both for %s; remove one", other, want, tag)
			continue
		}
		given[tag] = want
		format, wrong := source.compileString(id, tag, texts[want])
		for _, w := range wrong {
			problem("language %s: %s", want, w)
		}
		if b.own[tag] == nil {
			b.own[tag] = make(map[ID]string)
		}
		b.own[tag][id] = format
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

// adviseID names the messages that are called nearly like this.
func adviseID(sources map[ID]source, id ID) string {
	const few = 3
	near := min(3, len(id)/3) // edits
	distance := make(map[ID]int)
	for other := range sources {
		d := edits(string(id), string(other))
		if near > 0 && strings.Contains(string(other), string(id)) {
			d = min(d, near)
		}
		if d <= near {
			distance[other] = d
		}
	}
	ids := slices.SortedFunc(maps.Keys(distance), func(x, y ID) int {
		return cmp.Or(cmp.Compare(distance[x], distance[y]), cmp.Compare(x, y))
	})
	if len(ids) == 0 {
		return "take the identifiers from the English catalogue"
	}
	var names []string
	for _, id := range ids[:min(few, len(ids))] {
		names = append(names, fmt.Sprintf("%q", id))
	}
	return "is it " + strings.Join(names, " or ") + "?"
}

// edits counts the bytes to insert, delete or replace that make one string of
// the other (Levenshtein's distance).
func edits(a, b string) int {
	row := make([]int, len(b)+1) // from a[:i] to each b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
