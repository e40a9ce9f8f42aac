package control

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
)

// chmod is the SITE command that only some tenants allow.
const chmod = "CHMOD"

// siteName returns the name of the row of a SITE command.
func siteName(service string) string { return "SITE " + wire.Upper(service) }

// siteNames returns the sorted names of all SITE commands in a table.
func siteNames(table map[string]command) []string {
	var names []string
	for name := range table {
		if service, ok := strings.CutPrefix(name, "SITE "); ok {
			names = append(names, service)
		}
	}
	slices.Sort(names)
	return names
}

// site handles SITE with a command that does not exist or that the session does not offer.
func site(id *identity, _ *commandState, arg string) (wire.Reply, error) {
	name, _, _ := strings.Cut(arg, " ")
	return id.reply(502, i18n.NotImplemented, siteName(name)) // lftp retries forever after 504
}

// offers reports whether a client with this identity may use a SITE command of the table.
func offers(table map[string]command, id *identity, service string) bool {
	_, known := table[siteName(service)]
	return known && (!wire.Equal(service, chmod) || id.ignoresChmod())
}

// siteHelp handles SITE HELP and HELP SITE, for all SITE commands or for one.
func siteHelp(table map[string]command) stateCommand {
	return func(id *identity, _ *commandState, service string) (wire.Reply, error) {
		if service = wire.Upper(service); service != "" {
			if !offers(table, id, service) {
				return id.reply(502, i18n.UnknownCommand)
			}
			return id.reply(214, i18n.Syntax, table[siteName(service)].syntax)
		}
		lines := []string{id.text(i18n.SiteHelpIntro)}
		for _, service := range siteNames(table) {
			if offers(table, id, service) {
				usage := strings.TrimPrefix(table[siteName(service)].syntax, "SITE ")
				lines = append(lines, " "+id.locale.Syntax(usage))
			}
		}
		return wire.NewReply(214, append(lines, id.text(i18n.SiteHelpEnd))...), nil
	}
}

// siteURL handles SITE URL.
func (s *session) siteURL(arg string) (wire.Reply, error) {
	server, _ := netip.ParseAddrPort(s.dialogue.conn.LocalAddr().String())
	base := pathname.URIBase{TLS: s.dialogue.implicit, Addr: server,
		Host: s.identity.hostname, User: s.identity.name, Home: s.identity.login.Home}
	return s.onFile(arg, siteURL(base))
}
