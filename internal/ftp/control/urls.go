package control

import (
	"io/fs"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
)

// siteURL handles SITE URL, which shows the addresses of a file or directory as URIs or, with --8bit, as 8URIs
// (draft-masinter-url-i18n, 2.1 and 2.2). base holds all parts of the URI except the name.
func siteURL(base pathname.URIBase) fileCommand {
	return func(r *fileRequest, arg string) (wire.Reply, error) {
		name, eightBit := strings.CutPrefix(arg, "--8bit ")
		info, err := r.find(name)
		if err != nil {
			return wire.Reply{}, err
		}
		located := r.Path
		base.EncodeName = pathname.InNormalForm(r.login.NameRules(), located, r.Has)
		uris := []string{
			base.URI(located, info.IsDir()), pathname.WithFinalSlash(r.login.View.URI(located), info.IsDir()),
		}
		lines := append([]string{r.text(i18n.URLsIntro)}, pathname.URILines(uris, eightBit)...)
		return wire.NewReply(200, append(lines, r.text(i18n.URLsEnd))...), nil
	}
}

// presignedLife is the default lifetime of a link.
const presignedLife = time.Hour

// sitePresign handles SITE PRESIGN, which returns a link to download a file over HTTPS without FTP. If the last word of
// the argument looks like a duration, it is the lifetime of the link, unless a file has the whole argument as its name.
// usage is the syntax that a 501 reply shows, without the duration.
func sitePresign(usage string) fileCommand {
	return func(r *fileRequest, arg string) (wire.Reply, error) {
		maxLife := r.login.Tenant.Presign
		switch {
		case maxLife == 0:
			return r.reply(550, i18n.LinksDisabled), nil
		case !r.login.MayPresign():
			return wire.Reply{}, fs.ErrPermission
		}
		life := min(presignedLife, maxLife)
		link, err := r.presign(arg, life)
		if i := strings.LastIndexByte(arg, ' '); err != nil && i > 0 {
			if requested, ok := wire.ParseDuration(arg[i+1:]); ok {
				if requested < time.Second || requested > maxLife {
					return r.reply(501, i18n.Syntax, usage+" <SP> 1s-"+wire.FormatDuration(maxLife)), nil
				}
				life = requested
				link, err = r.presign(arg[:i], life)
			}
		}
		if err != nil {
			return wire.Reply{}, err
		}
		return wire.NewReply(
			200, r.text(i18n.LinkIntro, r.locale.Time(time.Now().Add(life))), " "+link, r.text(i18n.LinkEnd)), nil
	}
}

func (r *fileRequest) presign(arg string, life time.Duration) (link string, err error) {
	err = r.lookup(arg, func(name string) (err error) {
		link, err = r.Storage.Presign(name, life)
		return err
	})
	return link, err
}
