package control

import (
	"errors"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
)

// lang handles LANG (RFC 2640, 4.1 and 4.2). Without an argument it restores the default language, which after
// login is the language of the user. A client that sends LANG implements RFC 2640, so its pathnames are UTF-8.
func lang(id *identity, _ *commandState, arg string) (wire.Reply, error) {
	if arg == "" {
		id.locale.Choice = pathname.UTF8
		id.locale.Reset()
		return id.languageSet(i18n.LanguageSet)
	}
	match, err := id.locale.Negotiate(arg)
	switch {
	case errors.Is(err, i18n.ErrSyntax):
		return wire.Reply{}, errSyntax
	case err != nil:
		return wire.NewReply(504, id.locale.LanguageUnsupported(arg)), nil
	}
	id.locale.Choice = pathname.UTF8
	id.locale.Select(match.Tag)
	if match.Exact {
		return id.languageSet(i18n.LanguageSet)
	}
	return id.languageSet(i18n.LanguageSetNearest, arg, id.locale.Name(match))
}

// languageSet returns the reply to LANG, preceded by the tenant's greeting in the new language (RFC 2640, 4.1).
func (id *identity) languageSet(message i18n.ID, args ...string) (wire.Reply, error) {
	lines := reply.Greeting(id.locale, id.tenant, id.login)
	return wire.NewReply(200, append(lines, id.text(message, args...))...), nil
}
