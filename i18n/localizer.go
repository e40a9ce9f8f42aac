package i18n

import (
	"strconv"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// A Localizer renders messages in one language. There is one for each language,
// which any number of sessions share.
type Localizer struct {
	tag     language.Tag
	printer *message.Printer
	english *message.Printer
	missing map[ID]bool // messages that only english has
}

// Localizer returns the localizer of the language that fits the tag best, and
// the English one when none does.
func (b *Bundle) Localizer(tag language.Tag) *Localizer {
	if l, ok := b.localizers[tag]; ok {
		return l
	}
	if i, ok := match(b.matcher, b.tags, tag); ok {
		tag = b.tags[i]
	} else {
		tag = language.English
	}
	return b.localizers[tag]
}

// Tag returns the language.
func (l *Localizer) Tag() language.Tag { return l.tag }

// Text returns a message with its arguments, which stand in the order of the
// English text's placeholders, as beside the constants of ID. Arguments appear
// as they are: numbers are strings, because a printer groups their digits,
// and what comes from a client must be safe to show.
func (l *Localizer) Text(id ID, args ...string) string {
	printer := l.printer
	if l.missing[id] {
		printer = l.english
	}
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = argument(arg)
	}
	return printer.Sprintf(string(id), values...)
}

// An argument is printed as it is and yet has a plural form if it is a number.
type argument string

// PluralForm implements plural.Interface.
func (a argument) PluralForm(tag language.Tag, _ int) (form plural.Form, n int) {
	n, err := strconv.Atoi(string(a))
	if err != nil || n < 0 {
		return plural.Other, -1
	}
	return plural.Cardinal.MatchPlural(tag, n, 0, 0, 0, 0), n
}
