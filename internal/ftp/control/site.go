package control

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/report"
)

// chmod is the service that a tenant must ask for.
const chmod = "CHMOD"

// siteCommands are the rows of the services that SITE offers (RFC 959 4.1.3).
func siteCommands() map[string]command {
	services := map[string]command{
		chmod: {run: (*session).siteChmod, argument: wire.Text, syntax: " <SP> mode" + pathnameSyntax},
		"COPY": {run: onFile(siteCopy), argument: wire.Text, kind: report.Copy,
			syntax: pathnameSyntax + pathnameSyntax},
		"CPFR": {run: (*session).siteCopyFrom, argument: wire.Text, kind: report.Copy, syntax: pathnameSyntax},
		"CPTO": {run: (*session).siteCopyTo, argument: wire.Text, kind: report.Copy, syntax: pathnameSyntax},
		"HELP": {run: (*session).siteHelp, argument: wire.OptionalWords},
		"MKDIR": {run: byLibrary("SITE MKDIR", says(i18n.DirectoryCreated)), argument: wire.Text, kind: report.MakeDir,
			syntax: pathnameSyntax},
		"PRESIGN": {run: onFile(sitePresign("SITE PRESIGN" + pathnameSyntax)), argument: wire.Text,
			kind: report.Presign, syntax: pathnameSyntax + " [<SP> duration]"},
		"QUOTA": {run: onFile(siteQuota), argument: wire.OptionalText},
		"RMDIR": {run: byLibrary("SITE RMDIR", says(i18n.DirectoryRemoved)), argument: wire.Text, kind: report.RemoveDir, syntax: pathnameSyntax},
		"URL":   {run: (*session).siteURL, argument: wire.Text, syntax: " [<SP> --8bit]" + pathnameSyntax},
		"UTIME": {run: onFile(siteUTime), argument: wire.Text, kind: report.SetTime,
			syntax: " <SP> YYYYMMDDhhmmss" + pathnameSyntax},
	}
	table := map[string]command{}
	for name, c := range services {
		c.login, c.syntax = true, siteName(name)+c.syntax
		table[siteName(name)] = c
	}
	return table
}

// siteName is the name of the row of a service.
func siteName(service string) string { return "SITE " + wire.Upper(service) }

// siteNames are the names of all services in a table, in their order.
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

// site is SITE with a service that the session does not offer.
func (s *session) site(arg string) (wire.Reply, error) {
	name, _, _ := strings.Cut(arg, " ")
	return s.reply(502, i18n.NotImplemented, siteName(name)) // lftp asks again and again after 504
}

// offers tells whether the session offers a service.
func (s *session) offers(service string) bool {
	_, known := s.server.commands[siteName(service)]
	return known && (!wire.Equal(service, chmod) || s.identity.ignoresChmod())
}

// siteHelp is SITE HELP and HELP SITE, of all services or of one.
func (s *session) siteHelp(service string) (wire.Reply, error) {
	if service = wire.Upper(service); service != "" {
		if !s.offers(service) {
			return s.reply(502, i18n.UnknownCommand)
		}
		return s.reply(214, i18n.Syntax, s.server.commands[siteName(service)].syntax)
	}
	lines := []string{s.identity.text(i18n.SiteHelpIntro)}
	for _, service := range siteNames(s.server.commands) {
		if s.offers(service) {
			usage := strings.TrimPrefix(s.server.commands[siteName(service)].syntax, "SITE ")
			lines = append(lines, " "+s.identity.locale.Syntax(usage))
		}
	}
	return wire.NewReply(214, append(lines, s.identity.text(i18n.SiteHelpEnd))...), nil
}

// siteChmod is SITE CHMOD, which changes nothing. Some uploaders end when it fails.
func (s *session) siteChmod(string) (wire.Reply, error) { return s.reply(200, i18n.PermissionsNotKept) }

// siteCopyFrom is SITE CPFR. Other commands may come between it and SITE CPTO.
func (s *session) siteCopyFrom(arg string) (wire.Reply, error) {
	s.settings.copySource = nil
	r, err := s.answer(arg, cpfr)
	if r.Code == 350 {
		name := s.identity.nameCodec().Echo(s.directory, arg)
		s.settings.copySource = &copySource{Path: s.op.Located, Name: name}
	}
	return r, err
}

// siteCopyTo is SITE CPTO.
func (s *session) siteCopyTo(arg string) (wire.Reply, error) {
	from := s.settings.copySource
	if from == nil {
		return s.reply(503, i18n.CopyFromFirst)
	}
	s.settings.copySource = nil
	return s.answer(arg, cpto(*from))
}

// siteURL is SITE URL.
func (s *session) siteURL(arg string) (wire.Reply, error) {
	server, _ := netip.ParseAddrPort(s.dialogue.conn.LocalAddr().String())
	base := pathname.URIBase{TLS: s.dialogue.implicit, Addr: server,
		Host: s.identity.hostname, User: s.identity.name, Home: s.identity.login.Home}
	return s.answer(arg, siteURL(base))
}
