// Package reply renders the texts that clients read: messages in their language and charset, the texts of a
// tenant, sizes and times. It also maps errors to reply codes and messages, see [ForError].
//
// A [Locale] is the language and the charset of one session. It changes with LANG, OPTS UTF8 and the tenant.
//
// It implements RFC 2640, sections 4.1 to 4.3: how LANG, HOST and a login select the language, and how FEAT lists
// the languages.
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

// Preferences are the preferences of the server or of a tenant. Zero values of a tenant select the value of the
// server.
type Preferences struct {
	Bundle          *i18n.Bundle
	DefaultLanguage language.Tag
	Encoding        *pathname.Encoding // for clients that have not shown that they use UTF-8
	Zone            *time.Location     // time zone of displayed times, nil for UTC
}

// PreferencesOf returns the preferences of a tenant, which may be nil, for a client with this charset.
func PreferencesOf(t *account.Tenant, charset *pathname.Encoding) Preferences {
	if t == nil {
		return Preferences{Encoding: charset}
	}
	return Preferences{
		Bundle: t.Bundle, DefaultLanguage: t.DefaultLanguage, Encoding: charset, Zone: t.Timezone.Location(),
	}
}

// A Locale holds the language and the charset of the replies in a session.
type Locale struct {
	// Choice is the charset that the client has chosen with a command or revealed with its pathnames.
	Choice pathname.Choice

	server   Preferences
	tenant   Preferences  // zero before a tenant is known
	user     language.Tag // language of the logged-in user, or undetermined
	lang     *i18n.Localizer
	selected bool // the client has selected the language with LANG
}

// NewLocale returns a locale with the preferences of the server.
func NewLocale(server Preferences) *Locale {
	l := &Locale{server: server}
	l.SetTenant(Preferences{}, language.Und)
	return l
}

// Text renders a message as a line of a reply. Control characters and invalid UTF-8 in arguments are replaced.
// Placeholders in the syntax of a command are translated.
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

// TextFor renders a message about a file. The name is already encoded for the client and is not changed.
func (l *Locale) TextFor(id i18n.ID, name string) string {
	const mark = "\x00" // in every charset, but in no text
	return l.line(strings.Replace(l.Encode(l.lang.Text(id, l.isolate(mark))), mark, name, 1))
}

// WordsWith renders a message without arguments, followed by a colon and an explanation from another program
// unless that is empty.
func (l *Locale) WordsWith(id i18n.ID, explanation string) string {
	if explanation == "" {
		return l.Words(id)
	}
	return l.Encode(l.lang.WithoutStop(id) + l.lang.Colon() + l.isolate(explanation))
}

// About appends the names of the files that sentences describe, if any, in parentheses. They follow the reason, so
// that a client that cuts long lines shows why a command failed. The names must be encoded as for TextFor and the
// sentences rendered with Words.
func (l *Locale) About(names []string, sentences ...string) string {
	text := l.join(sentences)
	if len(names) > 0 {
		shown := make([]string, len(names))
		for i, name := range names {
			shown[i] = l.isolate(name)
		}
		text += " (" + strings.Join(shown, " -> ") + ")"
	}
	return l.line(text)
}

// join joins sentences, which end with the full stop of their language or with nothing.
func (l *Locale) join(sentences []string) string {
	space := " "
	switch base, _ := l.Tag().Base(); base.String() {
	case "ja", "zh":
		space = ""
	}
	return strings.Join(sentences, space)
}

// Field returns a field that clients parse after a text, such as the size of a file. A space precedes it, because
// some clients search for that.
func (l *Locale) Field(field string) string {
	if !l.usesIsolates() {
		return " " + field
	}
	return " \u2066 " + field + "\u2069"
}

// line isolates the text of a reply from the code before it, which would otherwise make a client show its sentences
// from left to right. A text without right-to-left letters is not translated and needs no isolate.
func (l *Locale) line(text string) string {
	if !l.usesIsolates() || !strings.ContainsFunc(text, isRightToLeft) {
		return text
	}
	return l.lang.IsolateLine(text)
}

// isolate isolates text of another direction in a right-to-left text.
func (l *Locale) isolate(words string) string {
	if !l.usesIsolates() {
		return words
	}
	return l.lang.Isolate(words)
}

// usesIsolates reports whether the language is written from right to left and the charset is UTF-8, which has the
// characters for isolates.
func (l *Locale) usesIsolates() bool { return l.lang.RightToLeft() && l.textCharset().UTF8() }

// isRightToLeft reports whether a letter is written from right to left.
func isRightToLeft(r rune) bool {
	properties, _ := bidi.LookupRune(r)
	class := properties.Class()
	return class == bidi.R || class == bidi.AL
}

// lines renders a text of a tenant, line by line. choices holds texts by language, in order of preference. values
// returns the values of variables in the language of the chosen text. Lines with a variable that has no value are
// omitted. If the tenant has no text, lines returns nil.
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

// Encode encodes a text for the client: in the charset of the tenant until the client has shown that it reads
// UTF-8. If the charset lacks typographic characters or the comma below of Romanian, they are simplified. If it
// lacks other characters, the text is sent in UTF-8.
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

// Charset returns the encoding for the client, except in directories with their own encoding.
func (l *Locale) Charset() *pathname.Encoding { return l.tenant.Encoding.For(l.Choice) }

// textCharset returns the encoding of texts. After LANG it is UTF-8 (RFC 2640, 4.1), even if pathnames have
// another encoding.
func (l *Locale) textCharset() *pathname.Encoding {
	if l.selected {
		return nil
	}
	return l.Charset()
}

// printable replaces control characters. Invalid UTF-8 needs no case, because strings.Map replaces each invalid
// byte.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return unicode.ReplacementChar
	}
	return r
}

// Tag returns the language.
func (l *Locale) Tag() language.Tag { return l.lang.Tag() }

// Tags lists the languages like FEAT (RFC 2640, 4.3), with mark after the current one. If the client has selected
// a language that the tenant does not offer, no language is marked: the list shows what LANG accepts, and the mark
// is optional.
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

// LanguageUnsupported renders the reply to a LANG with an unsupported language, which lists the supported languages.
func (l *Locale) LanguageUnsupported(requested string) string {
	var names []string
	for _, tag := range l.bundle().Tags() {
		names = append(names, l.isolate(l.inCharset(i18n.LanguageName(tag), tag)))
	}
	return l.line(l.Encode(l.lang.Text(i18n.LanguageUnsupported, l.isolate(requested), l.lang.List(names))))
}

// Name returns the name of the language of a match, with its tag.
func (l *Locale) Name(m i18n.Match) string { return l.inCharset(m.Name(), m.Tag) }

// inCharset returns the name of a language, or its tag if the charset of the client lacks letters of the name.
func (l *Locale) inCharset(name string, tag language.Tag) string {
	if !l.textCharset().UTF8() && !isASCII(name) && l.Encode(name) == name {
		return tag.String()
	}
	return name
}

// bundle returns the texts of the tenant, or else of the server.
func (l *Locale) bundle() *i18n.Bundle { return cmp.Or(l.tenant.Bundle, l.server.Bundle) }

// Negotiate finds the language for the argument of LANG, see [i18n.Bundle.Negotiate].
func (l *Locale) Negotiate(arg string) (i18n.Match, error) { return l.bundle().Negotiate(arg) }

// Select sets the language until the client selects another one or Reset is called.
func (l *Locale) Select(tag language.Tag) {
	l.lang, l.selected = l.bundle().Localizer(tag), true
}

// Reset restores the default language.
func (l *Locale) Reset() {
	l.Unselect()
	l.lang = l.bundle().Localizer(l.defaultLanguage())
}

// Unselect lets the next tenant set the language.
func (l *Locale) Unselect() { l.selected = false }

// defaultLanguage returns the language of the user, of the tenant or of the server, whichever is set first.
func (l *Locale) defaultLanguage() language.Tag {
	for _, tag := range []language.Tag{l.user, l.tenant.DefaultLanguage} {
		if tag != language.Und {
			return tag
		}
	}
	return l.server.DefaultLanguage
}

// InEnglish returns the locale for English, or nil if the language is English.
func (l *Locale) InEnglish() *Locale {
	english := *l
	if english.lang = l.localizer(language.English); english.lang.Tag() == l.Tag() {
		return nil
	}
	return &english
}

// localizer returns a language with the texts of the tenant, or with the texts of the server if the tenant does not
// offer the language. If the server does not either, texts are in English and only values use the language.
func (l *Locale) localizer(tag language.Tag) *i18n.Localizer {
	for _, bundle := range []*i18n.Bundle{l.bundle(), l.server.Bundle} {
		if found, ok := bundle.Match(tag); ok {
			return bundle.Localizer(found)
		}
	}
	return l.server.Bundle.Localizer(language.English).In(tag)
}

// SetTenant sets the preferences of the tenant, which may be zero, and the language of its user. A language
// that the client has selected stays, with the texts of the tenant, or of the server if the tenant does not offer
// it: only HOST, REIN and another LANG end what was negotiated (RFC 2640, 4.1).
func (l *Locale) SetTenant(tenant Preferences, user language.Tag) {
	l.tenant, l.user = tenant, user
	if !l.selected {
		l.Reset()
		return
	}
	l.lang = l.localizer(l.lang.Tag())
}
