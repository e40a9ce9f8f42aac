package control

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/list"

	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// mlst (RFC 3659 7) tells some facts of one entry, with the pathname that was asked for.
func mlst(facts list.Facts) fileCommand {
	return func(r *fileRequest, arg string) (wire.Reply, error) {
		info, err := r.find(arg)
		if err != nil {
			return wire.Reply{}, err
		}
		shown := r.echo(arg)
		if arg == "" {
			shown = r.Names.EncodePath(r.WorkingDirectory)
		}
		client := r.listClient()
		entry := list.Entry{FileInfo: client.Dated(info, time.Time{}), Dir: path.Dir(r.Path)}
		line := append(facts.Append([]byte(" "), client, entry), shown...)
		return wire.NewReply(250, r.text(i18n.FileDetails), string(line), r.text(i18n.DetailsEnd)), nil
	}
}

// stat describes a file, an upload that can be resumed or a directory.
func (r *fileRequest) stat(name string) (fs.FileInfo, error) {
	if name == "/" {
		return view.Directory("/"), nil
	}
	return r.statOrPending(name, r.Storage.Stat)
}

// mdtm (RFC 3659 3) tells when a file was modified. Directories have no such time. Clients from before MFMT set the
// time by it, with the argument of MFMT. A file whose whole name looks so is the one that they ask about.
func mdtm(r *fileRequest, arg string) (wire.Reply, error) {
	var info fs.FileInfo
	err := r.lookup(arg, func(name string) (err error) {
		info, err = r.Storage.StatFile(name)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		if t, pathname, ok := wire.ParseMFMT(arg); ok {
			return r.setModified(pathname, t)
		}
	}
	if err != nil {
		return wire.Reply{}, err
	}
	value, ok := wire.AppendTimeVal(nil, info.ModTime())
	if !ok {
		return wire.Reply{}, r.about(arg, &fs.PathError{Op: "mdtm", Path: r.Path, Err: errors.ErrUnsupported})
	}
	return wire.NewReply(213, string(value)), nil
}

// mfmt (draft-somers-ftp-mfxx 3) has a time, one SP and a pathname.
func mfmt(r *fileRequest, arg string) (wire.Reply, error) {
	t, pathname, ok := wire.ParseMFMT(arg)
	if !ok {
		return wire.Reply{}, errSyntax
	}
	return r.setModified(pathname, t)
}

// mff (draft-somers-ftp-mfxx 5) has facts, one SP and a pathname. Only the time of modification can be changed; the
// time when an object was created is S3's own. A command with a fact that is refused changes nothing.
func mff(r *fileRequest, arg string) (wire.Reply, error) {
	t, refused, pathname, ok := wire.ParseMFF(arg)
	switch {
	case !ok:
		return wire.Reply{}, errSyntax
	case refused != nil:
		return wire.NewReply(
			504, r.text(i18n.ParameterNotImplemented, "MFF")+" ("+wire.Upper(strings.Join(refused, ", "))+")"), nil
	}
	return r.setModified(pathname, t)
}

// siteUTime is SITE UTIME, by which clients from before MFMT set the time.
func siteUTime(r *fileRequest, arg string) (wire.Reply, error) {
	t, pathname, ok := wire.ParseUTIME(arg)
	if !ok {
		return wire.Reply{}, errSyntax
	}
	return r.setModified(pathname, t)
}

// setModified sets the time of modification of a file and says which it is now.
func (r *fileRequest) setModified(pathname string, t time.Time) (wire.Reply, error) {
	if err := r.lookup(pathname, func(name string) error { return r.Storage.SetTime(name, t) }); err != nil {
		return wire.Reply{}, err
	}
	value, _ := wire.AppendTimeVal(nil, t) // it was read from one
	return wire.NewReply(213, "Modify="+string(value)+"; "+r.echo(pathname)), nil
}

// siteQuota is SITE QUOTA: how much is stored of what the user may store.
func siteQuota(r *fileRequest, _ string) (wire.Reply, error) {
	switch usage, known := r.Locale.UsageOf(r.Login); {
	case r.Login.Usage == nil:
		return r.reply(200, i18n.QuotaNone), nil
	case r.Login.QuotaHidden():
		return wire.Reply{}, fs.ErrPermission
	case !known:
		return r.reply(451, i18n.QuotaUnknown), nil
	default:
		return r.reply(200, i18n.QuotaState, usage.Used, usage.Limit), nil
	}
}

// avbl is AVBL (draft-peterson-streamlined-ftp-command-extensions 4): how many bytes the quota leaves. S3 itself
// has no bound that it tells.
func avbl(r *fileRequest, _ string) (wire.Reply, error) {
	switch {
	case r.Login.Usage == nil:
		return r.reply(550, i18n.QuotaNone), nil
	case r.Login.QuotaHidden():
		return wire.Reply{}, fs.ErrPermission
	}
	used, limit, known := r.Login.Usage()
	if !known {
		return r.reply(451, i18n.QuotaUnknown), nil
	}
	return wire.NewReply(213, strconv.FormatInt(max(0, limit-used), 10)), nil
}
