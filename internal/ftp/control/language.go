package control

import (
	"errors"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
)

// language is LANG (RFC 2640 4.1 and 4.2). Without an argument the default language comes back, which is the user's
// after the login. Who sends it knows RFC 2640, whose pathnames are UTF-8.
func (s *session) language(arg string) (wire.Reply, error) {
	if arg == "" {
		s.identity.locale.Choice = pathname.UTF8
		s.identity.locale.Reset()
		return s.languageSet(i18n.LanguageSet)
	}
	match, err := s.identity.locale.Negotiate(arg)
	switch {
	case errors.Is(err, i18n.ErrSyntax):
		return s.syntaxError()
	case err != nil:
		return s.reply(504, i18n.LanguageUnsupported, arg, s.identity.locale.Tags(""))
	}
	s.identity.locale.Choice = pathname.UTF8
	s.identity.locale.Select(match.Tag)
	if match.Exact {
		return s.languageSet(i18n.LanguageSet)
	}
	return s.languageSet(i18n.LanguageSetNearest, arg, i18n.FeatTag(match.Tag))
}

// languageSet is the answer to LANG, with the greeting of the tenant in the language (RFC 2640 4.1).
func (s *session) languageSet(id i18n.ID, args ...string) (wire.Reply, error) {
	lines := reply.Greeting(s.identity.locale, s.identity.tenant, s.identity.login)
	return wire.NewReply(200, append(lines, s.identity.text(id, args...))...), nil
}
