package control

import (
	"slices"
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/syntax"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// help is HELP (RFC 959 4.1.3).
func (s *session) help(arg string) {
	if arg == "" {
		s.helpAll()
		return
	}
	name, service, _ := strings.Cut(syntax.Upper(arg), " ")
	if name == "SITE" {
		s.siteHelp(service)
		return
	}
	c, known := s.server.commands[name]
	switch {
	case !known:
		s.reply(502, i18n.UnknownCommand)
	case c.syntax == "":
		s.reply(502, i18n.NotImplemented, name)
	default:
		s.reply(214, i18n.Syntax, c.syntax)
	}
}

func (s *session) helpAll() {
	var names []string
	for name, c := range s.server.commands {
		if c.syntax != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	lines := append([]string{s.text(i18n.HelpIntro)}, reply.Columns(names)...)
	s.send(wire.NewReply(214, append(lines, s.text(i18n.HelpEnd))...))
}
