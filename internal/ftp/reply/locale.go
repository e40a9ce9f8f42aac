// Package reply renders what a client reads: messages in its language and charset,
// the texts of a tenant, sizes and times.
//
// A [Locale] is the language and the charset of one session. It changes with LANG,
// OPTS UTF8 and the tenant.
//
// It follows RFC 2640, sections 4.1 to 4.3: how LANG, HOST and a login choose the
// language, and how FEAT lists the languages.
package reply

import (
	"cmp"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/language"
	"golang.org/x/text/unicode/bidi"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/users/account"
)

// Preferences are those of the server or of a tenant. Zero values of a tenant
// mean what the server prefers.
type Preferences struct {
	Bundle          *i18n.Bundle
	DefaultLanguage language.Tag
	Encoding        *pathname.Encoding // of clients that have not shown that they read UTF-8
	Zone            *time.Location     // of times, nil for UTC
}

// PreferencesOf returns the preferences of a tenant, which may be nil, for a client that writes in a charset.
func PreferencesOf(t *account.Tenant, charset *pathname.Encoding) Preferences {
	if t == nil {
		return Preferences{Encoding: charset}
	}
	return Preferences{
		Bundle: t.Bundle, DefaultLanguage: t.DefaultLanguage, Encoding: charset, Zone: t.Timezone.Location(),
	}
}

// A Locale is the language and the charset in which a session answers.
type Locale struct {
	// Choice is the charset in which the client has shown, by a command or by its pathnames, that it writes.
	Choice pathname.Choice

	server   Preferences
	tenant   Preferences  // zero for none
	user     language.Tag // of the user who has logged in, undetermined for none
	lang     *i18n.Localizer
	selected bool // whether the client has selected the language with LANG
}

// NewLocale begins with the preferences of the server.
func NewLocale(server Preferences) *Locale {
	l := &Locale{server: server}
	l.SetTenant(Preferences{}, language.Und)
	return l
}

// Text renders a message as a line of a reply. What a client has sent becomes one line of UTF-8. The syntax of a
// command has the words of the language.
func (l *Locale) Text(id i18n.ID, args ...string) string { return l.line(l.Words(id, args...)) }

// Words renders a message that shares its line with a field that clients parse, such as the address in 227.
func (l *Locale) Words(id i18n.ID, args ...string) string {
	shown := make([]string, len(args))
	for i, arg := range args {
		if id == i18n.Syntax {
			arg = l.translateArguments(arg)
		}
		shown[i] = l.isolate(strings.Map(printable, arg))
	}
	return l.Encode(l.lang.Text(id, shown...))
}

// TextFor renders a message about a file. The name is as the client gets it, in one line, and does not change.
func (l *Locale) TextFor(id i18n.ID, name string) string {
	const mark = "\x00" // in every charset, and in no text
	return l.line(strings.Replace(l.Encode(l.lang.Text(id, l.isolate(mark))), mark, name, 1))
}

// WordsWith is Words of a message without arguments, and what another program says of it after a colon, if it says
// anything.
func (l *Locale) WordsWith(id i18n.ID, said string) string {
	if said == "" {
		return l.Words(id)
	}
	return l.Encode(l.lang.WithoutStop(id) + l.lang.Colon() + l.isolate(said))
}

// About puts the names of the files that sentences describe before them, if there are any. The names are as in TextFor,
// and the sentences those of Words.
func (l *Locale) About(names []string, sentences ...string) string {
	text := l.join(sentences)
	if len(names) > 0 {
		shown := make([]string, len(names))
		for i, name := range names {
			shown[i] = l.isolate(name)
		}
		text = strings.Join(shown, " -> ") + l.Encode(l.lang.Colon()) + text
	}
	return l.line(text)
}

// join makes one text of sentences, each of which ends in the full stop of its language, or in none.
func (l *Locale) join(sentences []string) string {
	space := " "
	switch base, _ := l.Tag().Base(); base.String() {
	case "ja", "zh":
		space = ""
	}
	return strings.Join(sentences, space)
}

// Field is what clients parse behind a text, such as the size of a file. It has a space before it, which some of them
// look for.
func (l *Locale) Field(field string) string {
	if !l.isolates() {
		return " " + field
	}
	return " \u2066 " + field + "\u2069"
}

// line isolates a line from the code before it, which would make a window show its sentences from left to right. A text that has no letter of the language's script is not translated.
func (l *Locale) line(text string) string {
	if !l.isolates() || !strings.ContainsFunc(text, fromRightToLeft) {
		return text
	}
	return l.lang.IsolateLine(text)
}

// isolate keeps words of another direction together in a text from right to left.
func (l *Locale) isolate(words string) string {
	if !l.isolates() {
		return words
	}
	return l.lang.Isolate(words)
}

// isolates reports whether the language is written from right to left and the charset, UTF-8, has the characters for
// isolates.
func (l *Locale) isolates() bool { return l.lang.RightToLeft() && l.textCharset().UTF8() }

// fromRightToLeft says whether a letter is written so.
func fromRightToLeft(r rune) bool {
	properties, _ := bidi.LookupRune(r)
	class := properties.Class()
	return class == bidi.R || class == bidi.AL
}

// lines renders a text of a tenant for the reader, by lines. The choices are texts by language, in order of preference.
// values returns what the variables stand for, in the language of the chosen text. A line with a variable that has no
// value is left out. It returns nil if there is no text.
func (l *Locale) lines(values func(*Locale) map[string]string, choices ...map[language.Tag]string) []string {
	tag, text := i18n.SelectText([]language.Tag{l.Tag(), l.defaultLanguage()}, choices...)
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	in := *l
	in.lang = l.localizer(tag)
	own := values(&in)
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line, ok := in.fillIn(strings.TrimSpace(line), own); ok {
			lines = append(lines, in.line(in.Encode(line)))
		}
	}
	return lines
}

// Encode is a text as the client reads it: in the tenant's charset until the
// client has said that it reads UTF-8. Where the charset lacks typographic
// characters or the comma below of Romanian, it gets simpler ones. Where it lacks others, the text is UTF-8.
func (l *Locale) Encode(text string) string {
	charset := l.textCharset()
	if charset.Raw() || charset.UTF8() {
		return text
	}
	folded := foldPunctuation(text)
	for _, form := range []string{text, folded, cedillas(folded), separateTones(folded)} {
		encoded, _ := charset.Encode(form)
		if encoded != form || isASCII(form) {
			return encoded
		}
	}
	return text
}

// Charset returns the encoding of what the client reads, except in directories with an encoding of their own.
func (l *Locale) Charset() *pathname.Encoding { return l.tenant.Encoding.For(l.Choice) }

// textCharset is the encoding of texts: UTF-8 in a language that the client has
// selected (RFC 2640 4.1), also where its pathnames are in another one.
func (l *Locale) textCharset() *pathname.Encoding {
	if l.selected {
		return nil
	}
	return l.Charset()
}

// printable replaces control characters; strings.Map makes one replacement
// character of each byte that is no UTF-8.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return unicode.ReplacementChar
	}
	return r
}

// Tag is the language.
func (l *Locale) Tag() language.Tag { return l.lang.Tag() }

// Tags lists the languages as FEAT does (RFC 2640 4.3), with mark after the
// current one. Where the client has selected a language that the tenant does not
// offer, none is marked: the list says what LANG accepts, and the mark is optional.
func (l *Locale) Tags(mark string) string {
	var tags []string
	for _, tag := range l.bundle().Tags() {
		t := i18n.FeatTag(tag)
		if tag == l.lang.Tag() {
			t += mark
		}
		tags = append(tags, t)
	}
	return strings.Join(tags, ";")
}

// LanguageUnsupported says which language a client has requested in vain, and lists the languages that LANG accepts.
func (l *Locale) LanguageUnsupported(requested string) string {
	var names []string
	for _, tag := range l.bundle().Tags() {
		names = append(names, l.isolate(l.inCharset(i18n.LanguageName(tag), tag)))
	}
	return l.line(l.Encode(l.lang.Text(i18n.LanguageUnsupported, l.isolate(requested), l.lang.List(names))))
}

// Name returns the name of the language of a match, with its tag.
func (l *Locale) Name(m i18n.Match) string { return l.inCharset(m.Name(), m.Tag) }

// inCharset returns the name of a language, or only its tag if the charset of the client lacks the letters of the name.
func (l *Locale) inCharset(name string, tag language.Tag) string {
	if !l.textCharset().UTF8() && !isASCII(name) && l.Encode(name) == name {
		return tag.String()
	}
	return name
}

// bundle is the tenant's languages and texts, or else the server's.
func (l *Locale) bundle() *i18n.Bundle { return cmp.Or(l.tenant.Bundle, l.server.Bundle) }

// Negotiate finds the language for the argument of LANG, as [i18n.Bundle.Negotiate]
// does.
func (l *Locale) Negotiate(arg string) (i18n.Match, error) { return l.bundle().Negotiate(arg) }

// Select keeps a language until the client selects another one, or Reset.
func (l *Locale) Select(tag language.Tag) {
	l.lang, l.selected = l.bundle().Localizer(tag), true
}

// Reset goes back to the default language.
func (l *Locale) Reset() {
	l.Unselect()
	l.lang = l.bundle().Localizer(l.defaultLanguage())
}

// Unselect lets the next tenant choose the language.
func (l *Locale) Unselect() { l.selected = false }

// defaultLanguage is the user's, or else the tenant's, or else the server's.
func (l *Locale) defaultLanguage() language.Tag {
	for _, tag := range []language.Tag{l.user, l.tenant.DefaultLanguage} {
		if tag != language.Und {
			return tag
		}
	}
	return l.server.DefaultLanguage
}

// InEnglish is the locale for readers of English. It is nil if the language is English.
func (l *Locale) InEnglish() *Locale {
	english := *l
	if english.lang = l.localizer(language.English); english.lang.Tag() == l.Tag() {
		return nil
	}
	return &english
}

// localizer returns a language of the server in the tenant's words. If the tenant does not offer the language, the words
// are the server's. If the server has none either, its values are written as in English.
func (l *Locale) localizer(tag language.Tag) *i18n.Localizer {
	for _, bundle := range []*i18n.Bundle{l.bundle(), l.server.Bundle} {
		if found, ok := bundle.Match(tag); ok {
			return bundle.Localizer(found)
		}
	}
	return l.server.Bundle.Localizer(language.English).In(tag)
}

// SetTenant takes the preferences of a tenant, zero for none, and the language of
// its user. A language that the client has selected stays, in the tenant's words.
// Where the tenant does not offer it, the server's words stay: only HOST, REIN and
// another LANG end what was negotiated (RFC 2640 4.1).
func (l *Locale) SetTenant(tenant Preferences, user language.Tag) {
	l.tenant, l.user = tenant, user
	if !l.selected {
		l.Reset()
		return
	}
	l.lang = l.localizer(l.lang.Tag())
}
