package control

import (
	"io/fs"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
)

// siteURL is SITE URL: the addresses of a file or directory as URIs, or with
// --8bit as 8URIs (draft-masinter-url-i18n 2.1, 2.2). The base has all but the names.
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
		lines := append([]string{r.text(i18n.AddressesIntro)}, pathname.URILines(uris, eightBit)...)
		return wire.NewReply(200, append(lines, r.text(i18n.AddressesEnd))...), nil
	}
}

// presignedLife is how long a link is good unless the client says.
const presignedLife = time.Hour

// sitePresign is SITE PRESIGN: a link by which any HTTP client downloads a file over HTTPS. What follows the last SP is
// a duration if it can be one and no file has a name that ends so. usage is the syntax of the command as 501 shows it,
// up to the duration.
func sitePresign(usage string) fileCommand {
	return func(r *fileRequest, arg string) (wire.Reply, error) {
		longest := r.login.Tenant.Presign
		switch {
		case longest == 0:
			return r.reply(550, i18n.LinksDisabled), nil
		case !r.login.MayPresign():
			return wire.Reply{}, fs.ErrPermission
		}
		life := min(presignedLife, longest)
		link, err := r.presign(arg, life)
		if i := strings.LastIndexByte(arg, ' '); err != nil && i > 0 {
			if asked, ok := wire.ParseDuration(arg[i+1:]); ok {
				if asked < time.Second || asked > longest {
					return r.reply(501, i18n.Syntax, usage+" <SP> 1s-"+wire.FormatDuration(longest)), nil
				}
				life = asked
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
