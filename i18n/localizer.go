package i18n

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"
)

// A Localizer renders messages in one language. It is safe for concurrent use.
type Localizer struct {
	tag     language.Tag
	texts   map[ID]*text // all messages
	missing []ID         // messages that fall back to English
}

// A text is a message in one language.
type text struct {
	Text
	tag        language.Tag // for the plural rules
	parameters parameters
}

// newLocalizer returns a localizer with the texts of the language, or else its parents, or else English.
func (b *Bundle) newLocalizer(tag language.Tag) *Localizer {
	l := &Localizer{tag: tag, texts: make(map[ID]*text, len(b.sources))}
	for id := range b.sources {
		t := nearest(tag, func(t language.Tag) bool { return b.texts[t].has(id) })
		if t == language.Und {
			l.missing = append(l.missing, id)
			t = language.English
		}
		l.texts[id] = b.texts[t]()[id]
	}
	return l
}

// Localizer returns the localizer of the best matching language, or of the first language if none matches.
func (b *Bundle) Localizer(tag language.Tag) *Localizer {
	found, ok := b.Match(tag)
	if !ok {
		found = b.tags[0]
	}
	return b.localizers[found]()
}

// Tag returns the language.
func (l *Localizer) Tag() language.Tag { return l.tag }

// Text renders a message. The arguments are in the order of the placeholders in the English text, as listed
// in the comments of the ID constants. They appear unchanged; numbers are passed as strings, so that their
// digits are not grouped. The caller must escape text from clients.
func (l *Localizer) Text(id ID, args ...string) string {
	t := l.texts[id]
	if t == nil {
		return string(id)
	}
	var b strings.Builder
	for rest := t.choose(args); ; {
		before, after, found := strings.Cut(rest, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, _ := strings.Cut(after, "}")
		if i := slices.Index(t.parameters, name); 0 <= i && i < len(args) {
			b.WriteString(args[i])
		}
		rest = after
	}
}

// Colon returns the colon between a file name and a text about it, with the spaces that the language uses
// around it.
func (l *Localizer) Colon() string {
	switch base, _ := l.tag.Base(); base.String() {
	case "fr":
		return "\u00a0: "
	case "hy":
		return "՝ " // ։ would end a sentence
	case "ja", "zh":
		return "："
	}
	return ": "
}

// Prompt renders a message as a prompt: with a colon instead of the full stop.
func (l *Localizer) Prompt(id ID, args ...string) string {
	return strings.TrimRight(l.WithoutStop(id, args...)+l.Colon(), " ") + " "
}

// WithoutStop renders a message without its full stop.
func (l *Localizer) WithoutStop(id ID, args ...string) string {
	return strings.TrimRight(l.Text(id, args...), ".。।۔։")
}

// choose returns the text. If the text has plural forms, it returns the form for the number among the arguments.
func (t *text) choose(args []string) string {
	if t.Select == nil {
		return t.Msg
	}
	other := t.Select.Cases["other"]
	i := slices.Index(t.parameters, t.Select.Arg)
	if i >= len(args) {
		return other
	}
	n, err := strconv.Atoi(args[i])
	if err != nil || n < 0 {
		return other
	}
	form := formOf(t.tag, n)
	return cmp.Or(t.Select.Cases[fmt.Sprintf("=%d", n)], t.Select.Cases[form], other)
}
