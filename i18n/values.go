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

// Size formats a number of bytes in the largest binary unit in which it is at least 1: "29 bytes", "1.2 GiB".
// The units come from the messages size-bytes and size-units, which the page also uses. Digits are ASCII in
// all languages.
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

// isSize reports whether the message contains unit names, which are the same in many languages and scripts.
func (id ID) isSize() bool { return id == SizeBytes || id == SizeUnits }

// List joins items with the separator of the language. Lines can wrap after each separator; Chinese and
// Japanese wrap anywhere.
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

// LanguageName returns the name of a language in the language itself, with the tag that LANG accepts:
// "français (fr)".
func LanguageName(tag language.Tag) string { return languageName(tag, "") }

// Name returns the name of the language like LanguageName. If another script was requested and the tag does
// not name the script, the name includes it: "српски, ћирилица (sr)".
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

// scriptName returns the name of the language's script in the language itself, or else in English.
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

// Isolate protects a value from reordering in right-to-left text (Unicode Standard Annex 9: FSI and PDI).
// Numbers need no isolation, and must stay plain because they select plural forms.
func (l *Localizer) Isolate(words string) string {
	if !l.RightToLeft() || strings.Trim(words, "0123456789") == "" {
		return words
	}
	return "\u2068" + words + "\u2069"
}

// IsolateLine makes right-to-left text independent of what precedes it in the line, such as a reply code
// (Unicode Standard Annex 9: RLI and PDI).
func (l *Localizer) IsolateLine(text string) string {
	if !l.RightToLeft() {
		return text
	}
	return "\u2067" + text + "\u2069"
}

// In returns a localizer that formats values for a text in another language, such as a greeting, whose
// language may have no catalog.
func (l *Localizer) In(tag language.Tag) *Localizer {
	other := *l
	other.tag = tag
	return &other
}
