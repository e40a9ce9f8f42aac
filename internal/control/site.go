package control

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/filecmd"
	"github.com/babelftp/babelftp/internal/ftpuri"
	"github.com/babelftp/babelftp/internal/syntax"
	"github.com/babelftp/babelftp/internal/wire"
)

// chmod is the service that a tenant must ask for.
const chmod = "CHMOD"

// A siteCommand is one of the services that SITE offers (RFC 959 4.1.3).
type siteCommand struct {
	name   string
	syntax string // of what follows the name
	run    func(s *session, arg string)
}

func siteCommands() []siteCommand {
	return []siteCommand{
		{chmod, " <SP> mode" + pathnameSyntax, (*session).siteChmod},
		{"COPY", pathnameSyntax + pathnameSyntax, onFile(filecmd.Copy("SITE COPY" + pathnameSyntax + pathnameSyntax))},
		{"CPFR", pathnameSyntax, (*session).siteCopyFrom},
		{"CPTO", pathnameSyntax, (*session).siteCopyTo},
		{"HELP", "", (*session).siteHelp},
		{"MKDIR", pathnameSyntax, func(s *session, arg string) { s.siteDirectory("MKDIR", arg) }},
		{"PRESIGN", pathnameSyntax + " [<SP> duration]", onFile(filecmd.Presign("SITE PRESIGN" + pathnameSyntax))},
		{"QUOTA", "", onFile(filecmd.Quota)},
		{"RMDIR", pathnameSyntax, func(s *session, arg string) { s.siteDirectory("RMDIR", arg) }},
		{"URL", " [<SP> --8bit]" + pathnameSyntax, (*session).siteURL},
		{"UTIME", " <SP> YYYYMMDDhhmmss" + pathnameSyntax, onFile(filecmd.UTime("SITE UTIME <SP> YYYYMMDDhhmmss" + pathnameSyntax))},
	}
}

// site is SITE (RFC 959 4.1.3).
func (s *session) site(arg string) {
	name, arg, _ := strings.Cut(arg, " ")
	for _, c := range siteCommands() {
		switch {
		case !syntax.Equal(c.name, name) || c.name == chmod && !s.ignoresChmod():
			continue
		case arg == "" && c.syntax != "":
			s.reply(501, i18n.Syntax, "SITE "+c.name+c.syntax)
		default:
			c.run(s, arg)
		}
		return
	}
	s.reply(502, i18n.NotImplemented, "SITE "+syntax.Upper(name)) // lftp asks again and again after 504
}

// isService says whether the argument of SITE names one of its services.
func isService(arg string) bool {
	name, _, _ := strings.Cut(arg, " ")
	return slices.ContainsFunc(siteCommands(), func(c siteCommand) bool { return syntax.Equal(c.name, name) })
}

// siteHelp is SITE HELP and HELP SITE, of all services or of one.
func (s *session) siteHelp(name string) {
	for _, c := range siteCommands() {
		if syntax.Equal(c.name, name) {
			s.reply(214, i18n.Syntax, "SITE "+c.name+c.syntax)
			return
		}
	}
	lines := []string{s.text(i18n.SiteHelpIntro)}
	for _, c := range siteCommands() {
		if c.name != chmod || s.ignoresChmod() {
			lines = append(lines, " "+s.locale.Syntax(c.name+c.syntax))
		}
	}
	s.send(wire.NewReply(214, append(lines, s.text(i18n.SiteHelpEnd))...))
}

// ignoresChmod tells whether the user's tenant answers SITE CHMOD, though S3 keeps no permissions.
func (s *session) ignoresChmod() bool { return s.login != nil && s.login.Tenant.IgnoreChmod }

// siteChmod is SITE CHMOD, which changes nothing. Some uploaders end when it fails.
func (s *session) siteChmod(string) { s.reply(200, i18n.PermissionsNotKept) }

// siteDirectory is SITE MKDIR and SITE RMDIR, which make a directory with its parents and remove one with its content.
func (s *session) siteDirectory(sub, arg string) {
	name, err := s.resolve(arg)
	if err == nil && name == "/" {
		err = fs.ErrPermission
	}
	if err != nil {
		s.replyError(err)
		return
	}
	s.send(s.forward("SITE "+sub, name))
}

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
	base := ftpuri.Base{TLS: s.implicit, Host: s.hostname, Addr: s.conn.LocalAddr(), User: s.name, Home: s.login.Home}
	s.answer(arg, filecmd.URL(base))
}
