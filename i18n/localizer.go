package i18n

import (
	"fmt"
	"strconv"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// A Localizer renders messages in one language. It is safe for concurrent use.
type Localizer struct {
	tag       language.Tag
	printer   *message.Printer
	english   *message.Printer
	missing   map[ID]bool   // messages that only english has
	overrides map[ID]string // a tenant's texts as formats for package fmt
}

// newLocalizer returns a localizer. It takes a message from the language, else from
// a parent, else from English. In each of them the tenant's text has priority.
func (b *Bundle) newLocalizer(tag language.Tag, printer, english *message.Printer) *Localizer {
	l := &Localizer{tag: tag, printer: printer, english: english, missing: make(map[ID]bool), overrides: make(map[ID]string)}
	for id := range b.sources {
		t := nearest(tag, func(t language.Tag) bool { return b.overrides[t][id] != "" || b.has[t][id] })
		if t == language.Und {
			l.missing[id] = true
			t = language.English
		}
		if format := b.overrides[t][id]; format != "" {
			l.overrides[id] = format
		}
	}
	return l
}

// Localizer returns the localizer of the language that matches the tag best. When
// none matches, it returns that of the first language.
func (b *Bundle) Localizer(tag language.Tag) *Localizer {
	found, ok := b.Match(tag)
	if !ok {
		found = b.tags[0]
	}
	return b.localizers[found]
}

// Tag returns the language.
func (l *Localizer) Tag() language.Tag { return l.tag }

// Text returns a message with its arguments, in the order of the English text's
// placeholders. The comments of the constants of ID name them. Arguments appear
// unchanged. Numbers are strings, because a printer would group their digits. The
// caller must make text of a client safe to show.
func (l *Localizer) Text(id ID, args ...string) string {
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = argument(arg)
	}
	if format, ok := l.overrides[id]; ok {
		return fmt.Sprintf(format, values...)
	}
	printer := l.printer
	if l.missing[id] {
		printer = l.english
	}
	return printer.Sprintf(string(id), values...)
}

// An argument prints unchanged, and has a plural form if it is a number.
type argument string

// PluralForm implements plural.Interface.
func (a argument) PluralForm(tag language.Tag, _ int) (form plural.Form, n int) {
	n, err := strconv.Atoi(string(a))
	if err != nil || n < 0 {
		return plural.Other, -1
	}
	return plural.Cardinal.MatchPlural(tag, n, 0, 0, 0, 0), n
}
