package control

import (
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftpuri"
	"github.com/babelftp/babelftp/internal/reply"
	"github.com/babelftp/babelftp/internal/syntax"
	"github.com/babelftp/babelftp/internal/wire"
)

// A siteCommand is one of the services that SITE offers (RFC 959 4.1.3).
type siteCommand struct {
	name   string
	syntax string // of what follows the name
	run    func(s *session, arg string)
}

func siteCommands() []siteCommand {
	return []siteCommand{
		{"COPY", pathnameSyntax + pathnameSyntax, (*session).siteCopy},
		{"CPFR", pathnameSyntax, (*session).siteCopyFrom},
		{"CPTO", pathnameSyntax, (*session).siteCopyTo},
		{"HELP", "", func(s *session, _ string) { s.siteHelp() }},
		{"MKDIR", pathnameSyntax, func(s *session, arg string) { s.siteDirectory("MKDIR", arg) }},
		{"PRESIGN", pathnameSyntax + " [<SP> duration]", (*session).sitePresign},
		{"QUOTA", "", func(s *session, _ string) { s.siteQuota() }},
		{"RMDIR", pathnameSyntax, func(s *session, arg string) { s.siteDirectory("RMDIR", arg) }},
		{"URL", " [<SP> --8bit]" + pathnameSyntax, (*session).siteURL},
	}
}

// site is SITE (RFC 959 4.1.3).
func (s *session) site(arg string) {
	name, arg, _ := strings.Cut(arg, " ")
	for _, c := range siteCommands() {
		switch {
		case !syntax.Equal(c.name, name):
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

// siteHelp is SITE HELP and HELP SITE.
func (s *session) siteHelp() {
	lines := []string{s.text(i18n.SiteHelpIntro)}
	for _, c := range siteCommands() {
		lines = append(lines, " "+c.name+c.syntax)
	}
	s.send(wire.NewReply(214, append(lines, s.text(i18n.SiteHelpEnd))...))
}

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

// siteQuota is SITE QUOTA: how much is stored of what the user may store.
func (s *session) siteQuota() {
	switch usage := reply.Usage(s.login); {
	case s.login.Quota == nil:
		s.reply(200, i18n.QuotaNone)
	case s.login.QuotaHidden:
		s.replyError(fs.ErrPermission)
	case usage == "":
		s.reply(451, i18n.StorageUnavailable)
	default:
		s.reply(200, i18n.QuotaState, usage)
	}
}

// siteURL is SITE URL: the addresses of a file or directory as URIs, or with
// --8bit as 8URIs (draft-masinter-url-i18n 2.1, 2.2).
func (s *session) siteURL(arg string) {
	pathname, eightBit := strings.CutPrefix(arg, "--8bit ")
	info, err := s.find(pathname)
	var uris []string
	if err == nil {
		err = s.perform(func() error {
			located := s.op.Path
			uris = append(uris, s.ftpURI(located, info.IsDir()))
			if s.login.ObjectURI != nil {
				uris = append(uris, ftpuri.WithFinalSlash(s.login.ObjectURI(located), info.IsDir()))
			}
			return nil
		})
	}
	if err != nil {
		s.replyError(err)
		return
	}
	lines := append([]string{s.text(i18n.AddressesIntro)}, ftpuri.Lines(uris, eightBit)...)
	s.send(wire.NewReply(200, append(lines, s.text(i18n.AddressesEnd))...))
}

// presignedLife is how long a link is good unless the client says.
const presignedLife = time.Hour

// sitePresign is SITE PRESIGN: a link by which any HTTP client downloads a file over HTTPS. What follows the last SP is a duration if it
// can be one and no file has a name that ends so.
func (s *session) sitePresign(arg string) {
	switch {
	case s.login.LinkLifetime == 0:
		s.reply(550, i18n.LinksDisabled)
		return
	case s.login.Presign == nil:
		s.replyError(fs.ErrPermission)
		return
	}
	life := min(presignedLife, s.login.LinkLifetime)
	link, err := s.presign(arg, life)
	if i := strings.LastIndexByte(arg, ' '); err != nil && i > 0 {
		if asked, ok := syntax.ParseDuration(arg[i+1:]); ok {
			if asked < time.Second || asked > s.login.LinkLifetime {
				s.reply(501, i18n.Syntax, fmt.Sprintf("SITE PRESIGN%s <SP> 1s-%s", pathnameSyntax, syntax.FormatDuration(s.login.LinkLifetime)))
				return
			}
			life = asked
			link, err = s.presign(arg[:i], life)
		}
	}
	if err != nil {
		s.replyError(err)
		return
	}
	s.send(wire.NewReply(200, s.text(i18n.LinkIntro, reply.Time(time.Now().Add(life))), " "+link, s.text(i18n.LinkEnd)))
}

func (s *session) presign(arg string, life time.Duration) (link string, err error) {
	err = s.lookup(arg, func(name string) (err error) {
		link, err = s.login.Presign(s.op.Context, name, life)
		return err
	})
	return link, err
}

// ftpURI is the URI of a pathname for the user who is logged in.
func (s *session) ftpURI(name string, directory bool) string {
	base := ftpuri.Base{
		TLS: s.implicit, Host: s.hostname, Addr: s.conn.LocalAddr(), User: s.name, Home: s.login.Home,
		EncodeName: ftpuri.InNormalForm(s.login.NameRules(), name, s.op.Has),
	}
	return base.URI(name, directory)
}
