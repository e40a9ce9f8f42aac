package i18n

import (
	"slices"
	"strings"

	"golang.org/x/text/language"
)

// OnPage reports whether the message stands only on the page of the admin listener. No
// reply has such a message. The page names it, so there is no constant for it.
func (id ID) OnPage() bool { return strings.HasPrefix(string(id), "page-") }

// shownOnPage reports whether the page has the message: its own ones, and three that it
// shares with replies and babelftp doctor.
func (id ID) shownOnPage() bool {
	return id.OnPage() || id == AuditUnavailable || id == SizeUnits || id == "doctor-storage-refuses"
}

// InReply reports whether replies may have the message: it is neither on the page nor
// one of babelftp doctor.
func (id ID) InReply() bool { return !id.OnPage() && !strings.HasPrefix(string(id), "doctor-") }

// ForPage returns the bundle of the languages that have all texts of the page. So
// the page is in one language, which its attribute lang tells screen readers.
func (b *Bundle) ForPage() *Bundle {
	tags := slices.DeleteFunc(b.Tags(), func(tag language.Tag) bool {
		return slices.ContainsFunc(b.localizers[tag]().missing, ID.shownOnPage)
	})
	page, _ := b.WithOverrides(tags, nil) // b has these languages
	return page
}

// PageTexts returns the texts of the page of the admin listener, for a reader of the
// language as in Localizer. The page puts values in the place of the placeholders,
// such as {Time}. A text with plural forms comes in the form "other".
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

// template is a text with its placeholders, such as {Time}.
func (l *Localizer) template(id ID, s source) string {
	args := slices.Clone(s.parameters)
	for i, name := range args {
		args[i] = "{" + name + "}"
	}
	return l.Text(id, args...)
}

// MatchAccept returns the language for a reader whose browser sends an
// Accept-Language (RFC 9110, section 12.5.4). It is the first one that matches by the
// rules of Negotiate, else the first of the bundle.
func (b *Bundle) MatchAccept(accept string) language.Tag {
	wanted, _, _ := language.ParseAcceptLanguage(accept) // none, if it cannot be parsed
	for _, want := range wanted {
		if tag, ok := b.Match(want); ok {
			return tag
		}
	}
	return b.tags[0]
}
