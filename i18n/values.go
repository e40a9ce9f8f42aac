package i18n

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
	"golang.org/x/text/message"
	"golang.org/x/text/number"
)

// Size writes a number of bytes for people, in the largest binary unit that it has one of: "29 bytes", "1.2 GiB". The
// units are the messages size-bytes and size-units, which the page uses too. Digits are ASCII in every language.
func (l *Localizer) Size(bytes int64) string {
	if bytes < 1<<10 {
		return l.Text(SizeBytes, strconv.FormatInt(bytes, 10))
	}
	size, units := float64(bytes)/(1<<10), strings.Fields(l.Text(SizeUnits))
	for size >= 1<<10 && len(units) > 1 {
		size /= 1 << 10
		units = units[1:]
	}
	tag, err := l.tag.SetTypeForKey("nu", "latn")
	if err != nil {
		tag = l.tag
	}
	decimal := number.Decimal(size, number.MaxFractionDigits(1), number.NoSeparator())
	return message.NewPrinter(tag).Sprint(decimal) + " " + units[0]
}

// isSize reports whether the message has names of units, which are the same in many languages and scripts.
func (id ID) isSize() bool { return id == SizeBytes || id == SizeUnits }

// List joins items with the separator of the language. A line can wrap after each, except in Chinese and Japanese,
// which wrap anywhere.
func (l *Localizer) List(items []string) string {
	separator := ", "
	switch base, _ := l.tag.Base(); base.String() {
	case "ar", "fa", "ur":
		separator = "، "
	case "ja", "zh":
		separator = "、"
	}
	return strings.Join(items, separator)
}

// LanguageName returns the name of a language in that language, and its tag as LANG accepts it: "français (fr)".
func LanguageName(tag language.Tag) string { return languageName(tag, "") }

// Name returns the name of the language as LanguageName does, with its script if another one was requested and the tag
// does not name it: "српски, ћирилица (sr)".
func (m Match) Name() string {
	if _, script, _ := m.Tag.Raw(); m.OtherScript && script == (language.Script{}) {
		return languageName(m.Tag, scriptName(m.Tag))
	}
	return LanguageName(m.Tag)
}

func languageName(tag language.Tag, script string) string {
	name := display.Self.Name(tag)
	switch {
	case name == "":
		return tag.String()
	case script != "":
		name += ", " + script
	}
	return name + " (" + tag.String() + ")"
}

// scriptName returns the name of the script of a language in that language, or in English.
func scriptName(tag language.Tag) string {
	script, _ := tag.Script()
	for _, names := range []display.Namer{display.Scripts(tag), display.English.Scripts()} {
		if names != nil {
			if name := names.Name(script); name != "" {
				return name
			}
		}
	}
	return script.String()
}

// RightToLeft reports whether the language is written from right to left.
func (l *Localizer) RightToLeft() bool {
	script, _ := l.tag.Script()
	return slices.Contains([]string{"Arab", "Hebr", "Syrc", "Thaa", "Nkoo", "Adlm"}, script.String())
}

// Isolate keeps the words of a value together in a text from right to left (Unicode Standard Annex 9: FSI and PDI). A
// number needs no isolate, and a plural form is chosen by it.
func (l *Localizer) Isolate(words string) string {
	if !l.RightToLeft() || strings.Trim(words, "0123456789") == "" {
		return words
	}
	return "\u2068" + words + "\u2069"
}

// IsolateLine makes a text from right to left independent of what precedes it in its line, such as the code of a reply
// (Unicode Standard Annex 9: RLI and PDI).
func (l *Localizer) IsolateLine(text string) string {
	if !l.RightToLeft() {
		return text
	}
	return "\u2067" + text + "\u2069"
}

// In returns the localizer for values in a text of another language that has no catalog of its own, such as a greeting.
func (l *Localizer) In(tag language.Tag) *Localizer {
	other := *l
	other.tag = tag
	return &other
}
