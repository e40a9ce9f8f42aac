package control

import (
	"slices"
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// help handles HELP (RFC 959, 4.1.3).
func help(table map[string]command) stateCommand {
	return func(id *identity, state *commandState, arg string) (wire.Reply, error) {
		if arg == "" {
			return helpAll(table, id)
		}
		name, service, _ := strings.Cut(wire.Upper(arg), " ")
		if name == "SITE" {
			return siteHelp(table)(id, state, service)
		}
		c, known := table[name]
		switch {
		case !known:
			return id.reply(502, i18n.UnknownCommand)
		case c.syntax == "":
			return id.reply(502, i18n.NotImplemented, name)
		default:
			return id.reply(214, i18n.Syntax, c.syntax)
		}
	}
}

func helpAll(table map[string]command, id *identity) (wire.Reply, error) {
	var names []string
	for name, c := range table {
		if c.syntax != "" && !strings.HasPrefix(name, siteName("")) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	lines := append([]string{id.text(i18n.HelpIntro)}, reply.Columns(names)...)
	return wire.NewReply(214, append(lines, id.text(i18n.HelpEnd))...), nil
}
