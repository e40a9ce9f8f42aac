package i18n

import (
	"slices"
	"strings"

	"golang.org/x/text/language"
)

// OnPage reports whether only the page of the admin listener shows the message. The page refers to these
// messages by name, so they have no constants.
func (id ID) OnPage() bool { return strings.HasPrefix(string(id), "page-") }

// shownOnPage reports whether the page shows the message: its own ones, and three that it shares with replies
// and babelftp doctor.
func (id ID) shownOnPage() bool {
	return id.OnPage() || id == AuditUnavailable || id == SizeUnits || id == "doctor-storage-refuses"
}

// InReply reports whether the message may be in a reply, and is not only for the page or babelftp doctor.
func (id ID) InReply() bool { return !id.OnPage() && !strings.HasPrefix(string(id), "doctor-") }

// ForPage returns a bundle of the languages that have all texts of the page, so that a page never mixes
// languages. Its attribute lang tells screen readers the language.
func (b *Bundle) ForPage() *Bundle {
	tags := slices.DeleteFunc(b.Tags(), func(tag language.Tag) bool {
		return slices.ContainsFunc(b.localizers[tag]().missing, ID.shownOnPage)
	})
	page, _ := b.WithOverrides(tags, nil) // b has these languages
	return page
}

// PageTexts returns the texts of the page for a reader of the language. Placeholders such as {Time} remain,
// for the page to fill in. For a text with plural forms, it returns the form "other".
func (b *Bundle) PageTexts(tag language.Tag) map[ID]string {
	l := b.Localizer(tag)
	texts := make(map[ID]string)
	for id, source := range b.sources {
		if id.shownOnPage() {
			texts[id] = l.template(id, source)
		}
	}
	return texts
}

// template returns a text with its placeholders, such as {Time}.
func (l *Localizer) template(id ID, s source) string {
	args := slices.Clone(s.parameters)
	for i, name := range args {
		args[i] = "{" + name + "}"
	}
	return l.Text(id, args...)
}

// MatchAccept returns the language for an Accept-Language header (RFC 9110, section 12.5.4): the first one
// that matches by the rules of Negotiate, or else the first language of the bundle.
func (b *Bundle) MatchAccept(accept string) language.Tag {
	wanted, _, _ := language.ParseAcceptLanguage(accept) // an invalid header matches no language
	for _, want := range wanted {
		if tag, ok := b.Match(want); ok {
			return tag
		}
	}
	return b.tags[0]
}
