package control

import (
	"errors"
	"strings"

	"github.com/babelftp/babelftp/i18n"
)

// language is LANG (RFC 2640 4.1 and 4.2). Without an argument the default
// language comes back.
func (s *session) language(arg string) {
	if arg == "" {
		s.chosen = false
		s.setLanguage(s.defaultLanguage())
		s.say(200, i18n.LanguageSet)
		return
	}
	match, err := s.server.cfg.Bundle.Negotiate(arg)
	switch {
	case errors.Is(err, i18n.ErrSyntax):
		s.syntaxError()
		return
	case err != nil:
		s.say(504, i18n.LanguageUnsupported, arg, s.languageTags(""))
		return
	}
	s.chosen = true
	s.setLanguage(match.Tag)
	if match.Exact {
		s.say(200, i18n.LanguageSet)
	} else {
		s.say(200, i18n.LanguageSetNearest, arg, i18n.FeatTag(match.Tag))
	}
}

// languageTags lists the languages as FEAT does (RFC 2640 4.3), with mark
// behind the current one.
func (s *session) languageTags(mark string) string {
	var tags []string
	for _, tag := range s.server.cfg.Bundle.Tags() {
		t := i18n.FeatTag(tag)
		if tag == s.lang.Tag() {
			t += mark
		}
		tags = append(tags, t)
	}
	return strings.Join(tags, ";")
}
