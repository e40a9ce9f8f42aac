package control

import (
	"errors"
	"strings"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/wire"
)

// language is LANG (RFC 2640 4.1 and 4.2). Without an argument the default
// language comes back. Who sends it knows RFC 2640, whose pathnames are UTF-8.
func (s *session) language(arg string) {
	if arg == "" {
		s.utf8, s.langSelected = true, false
		s.setLanguage(s.defaultLanguage())
		s.languageSet(i18n.LanguageSet)
		return
	}
	match, err := s.bundle().Negotiate(arg)
	switch {
	case errors.Is(err, i18n.ErrSyntax):
		s.syntaxError()
		return
	case err != nil:
		s.reply(504, i18n.LanguageUnsupported, arg, s.languageTags(""))
		return
	}
	s.utf8, s.langSelected = true, true
	s.setLanguage(match.Tag)
	if match.Exact {
		s.languageSet(i18n.LanguageSet)
	} else {
		s.languageSet(i18n.LanguageSetNearest, arg, i18n.FeatTag(match.Tag))
	}
}

// languageSet is the answer to LANG, with the greeting again where the tenant
// wants it (RFC 2640 4.1).
func (s *session) languageSet(id i18n.ID, args ...string) {
	var lines []string
	if s.tenant != nil && s.tenant.GreetAfterLang {
		lines = s.greeting()
	}
	s.send(wire.NewReply(200, append(lines, s.text(id, args...))...))
}

// languageTags lists the languages as FEAT does (RFC 2640 4.3), with mark
// behind the current one. None is marked where the client has chosen one that
// the tenant does not offer: the list says what LANG accepts, and the mark is
// optional.
func (s *session) languageTags(mark string) string {
	var tags []string
	for _, tag := range s.bundle().Tags() {
		t := i18n.FeatTag(tag)
		if tag == s.lang.Tag() {
			t += mark
		}
		tags = append(tags, t)
	}
	return strings.Join(tags, ";")
}

// bundle is the tenant's languages and texts, or else the server's.
func (s *session) bundle() *i18n.Bundle {
	if s.tenant != nil && s.tenant.Bundle != nil {
		return s.tenant.Bundle
	}
	return s.server.cfg.Bundle
}

// setLanguage makes a language the session's.
func (s *session) setLanguage(tag language.Tag) {
	s.lang = s.bundle().Localizer(tag)
}

// keepLanguage keeps the language that LANG has chosen, in the tenant's words.
// A tenant that does not offer it has none for it, and the server's stay: only
// HOST, REIN and another LANG end what was negotiated (RFC 2640 4.1).
func (s *session) keepLanguage() {
	tag := s.lang.Tag()
	s.setLanguage(tag)
	if s.lang.Tag() != tag {
		s.lang = s.server.cfg.Bundle.Localizer(tag)
	}
}

// defaultLanguage is the tenant's, or else the server's.
func (s *session) defaultLanguage() language.Tag {
	if s.tenant != nil && s.tenant.DefaultLanguage != language.Und {
		return s.tenant.DefaultLanguage
	}
	return s.server.cfg.DefaultLanguage
}

// setTenant makes a tenant, or none, the session's, and its language unless
// the client has chosen one.
func (s *session) setTenant(t *Tenant) {
	s.tenant = t
	if s.langSelected {
		s.keepLanguage()
	} else {
		s.setLanguage(s.defaultLanguage())
	}
}
