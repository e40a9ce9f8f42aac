package control

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/filecmd"
	"github.com/babelftp/babelftp/internal/ftp/syntax"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/names/pathname"
)

// chmod is the service that a tenant must ask for.
const chmod = "CHMOD"

// A siteCommand is one of the services that SITE offers (RFC 959 4.1.3).
type siteCommand struct {
	name     string
	argument syntax.Argument // how it is read
	syntax   string          // of what follows the name
	run      func(s *session, arg string)
}

func siteCommands() []siteCommand {
	return []siteCommand{
		{chmod, syntax.Text, " <SP> mode" + pathnameSyntax, (*session).siteChmod},
		{"COPY", syntax.Text, pathnameSyntax + pathnameSyntax,
			onFile(filecmd.Copy("SITE COPY" + pathnameSyntax + pathnameSyntax))},
		{"CPFR", syntax.Text, pathnameSyntax, (*session).siteCopyFrom},
		{"CPTO", syntax.Text, pathnameSyntax, (*session).siteCopyTo},
		{"HELP", syntax.OptionalWords, "", (*session).siteHelp},
		{"MKDIR", syntax.Text, pathnameSyntax, changing("SITE MKDIR")},
		{"PRESIGN", syntax.Text, pathnameSyntax + " [<SP> duration]",
			onFile(filecmd.Presign("SITE PRESIGN" + pathnameSyntax))},
		{"QUOTA", syntax.OptionalText, "", onFile(filecmd.Quota)},
		{"RMDIR", syntax.Text, pathnameSyntax, changing("SITE RMDIR")},
		{"URL", syntax.Text, " [<SP> --8bit]" + pathnameSyntax, (*session).siteURL},
		{"UTIME", syntax.Text, " <SP> YYYYMMDDhhmmss" + pathnameSyntax,
			onFile(filecmd.UTime("SITE UTIME <SP> YYYYMMDDhhmmss" + pathnameSyntax))},
	}
}

// siteNames are the names of all services, for the syntax of SITE.
func siteNames() string {
	var names []string
	for _, c := range siteCommands() {
		names = append(names, c.name)
	}
	return strings.Join(names, " | ")
}

// site is SITE (RFC 959 4.1.3).
func (s *session) site(arg string) {
	name, arg, hasArg := strings.Cut(arg, " ")
	c, known := s.service(name)
	if !known {
		s.reply(502, i18n.NotImplemented, "SITE "+syntax.Upper(name)) // lftp asks again and again after 504
		return
	}
	if arg, ok := c.argument.Read(arg, hasArg); ok {
		c.run(s, arg)
	} else {
		s.reply(501, i18n.Syntax, "SITE "+c.name+c.syntax)
	}
}

// services are those that the session offers.
func (s *session) services() []siteCommand {
	return slices.DeleteFunc(siteCommands(), func(c siteCommand) bool { return c.name == chmod && !s.ignoresChmod() })
}

// service returns the service of a name, in any case, and whether the session offers it.
func (s *session) service(name string) (c siteCommand, known bool) {
	services := s.services()
	i := slices.IndexFunc(services, func(c siteCommand) bool { return syntax.Equal(c.name, name) })
	if i < 0 {
		return siteCommand{}, false
	}
	return services[i], true
}

// isService says whether the argument of SITE names one of its services.
func isService(arg string) bool {
	name, _, _ := strings.Cut(arg, " ")
	return slices.ContainsFunc(siteCommands(), func(c siteCommand) bool { return syntax.Equal(c.name, name) })
}

// siteHelp is SITE HELP and HELP SITE, of all services or of one.
func (s *session) siteHelp(name string) {
	if name != "" {
		if c, known := s.service(name); known {
			s.reply(214, i18n.Syntax, "SITE "+c.name+c.syntax)
		} else {
			s.reply(502, i18n.UnknownCommand)
		}
		return
	}
	lines := []string{s.text(i18n.SiteHelpIntro)}
	for _, c := range s.services() {
		lines = append(lines, " "+s.locale.Syntax(c.name+c.syntax))
	}
	s.send(wire.NewReply(214, append(lines, s.text(i18n.SiteHelpEnd))...))
}

// ignoresChmod tells whether the user's tenant answers SITE CHMOD, though S3 keeps no permissions.
func (s *session) ignoresChmod() bool {
	return s.login != nil && s.login.Tenant.Chmod == config.IgnoreChmod
}

// siteChmod is SITE CHMOD, which changes nothing. Some uploaders end when it fails.
func (s *session) siteChmod(string) { s.reply(200, i18n.PermissionsNotKept) }

// siteCopyFrom is SITE CPFR. Other commands may come between it and SITE CPTO.
func (s *session) siteCopyFrom(arg string) {
	s.copySource = nil
	if s.answer(arg, filecmd.CopySource) {
		s.copySource = &filecmd.Source{Path: s.op.Path, Name: s.nameCodec().Echo(s.workingDirectory(), arg)}
	}
}

// siteCopyTo is SITE CPTO.
func (s *session) siteCopyTo(arg string) {
	from := s.copySource
	if from == nil {
		s.reply(503, i18n.CopyFromFirst)
		return
	}
	s.copySource = nil
	s.answer(arg, filecmd.CopyTo(*from))
}

// siteURL is SITE URL.
func (s *session) siteURL(arg string) {
	server, _ := netip.ParseAddrPort(s.conn.LocalAddr().String())
	base := pathname.Base{TLS: s.implicit, Host: s.hostname, Addr: server, User: s.name, Home: s.login.Home}
	s.answer(arg, filecmd.URL(base))
}
