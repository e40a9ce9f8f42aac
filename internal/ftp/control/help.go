package control

import (
	"slices"
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// help is HELP (RFC 959 4.1.3).
func (s *session) help(arg string) (wire.Reply, error) {
	if arg == "" {
		return s.helpAll()
	}
	name, service, _ := strings.Cut(wire.Upper(arg), " ")
	if name == "SITE" {
		return s.siteHelp(service)
	}
	c, known := s.server.commands[name]
	switch {
	case !known:
		return s.reply(502, i18n.UnknownCommand)
	case c.syntax == "":
		return s.reply(502, i18n.NotImplemented, name)
	default:
		return s.reply(214, i18n.Syntax, c.syntax)
	}
}

func (s *session) helpAll() (wire.Reply, error) {
	var names []string
	for name, c := range s.server.commands {
		if c.syntax != "" && !strings.HasPrefix(name, siteName("")) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	lines := append([]string{s.identity.text(i18n.HelpIntro)}, reply.Columns(names)...)
	return wire.NewReply(214, append(lines, s.identity.text(i18n.HelpEnd))...), nil
}
