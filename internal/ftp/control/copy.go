package control

import (
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// siteCopy handles SITE COPY, which is CPFR and CPTO in one command, for pathnames without spaces.
func siteCopy(r *fileRequest, arg string) (wire.Reply, error) {
	from, to, _ := strings.Cut(arg, " ")
	if from == "" || to == "" || strings.Contains(to, " ") {
		return wire.Reply{}, errSyntax
	}
	err := r.lookup(from, r.Has)
	if err == nil {
		err = r.copy(copySource{r.Located, r.echo(from)}, to)
	}
	return r.reply(200, i18n.Copied), err
}

// cpfr handles SITE CPFR, which names the file or directory that SITE CPTO copies, like mod_copy of ProFTPD. Other
// commands may come between the two.
func cpfr(r *fileRequest, arg string) (wire.Reply, error) {
	r.copySource = nil
	if err := r.lookup(arg, r.Has); err != nil {
		return wire.Reply{}, err
	}
	r.copySource = &copySource{Path: r.Located, Name: r.echo(arg)}
	return r.reply(350, i18n.CopyReady), nil
}

// cpto handles SITE CPTO. S3 copies the file, so its bytes do not pass through this server.
func cpto(r *fileRequest, arg string) (wire.Reply, error) {
	from := r.copySource
	if from == nil {
		return r.reply(503, i18n.CopyFromFirst), nil
	}
	r.copySource = nil
	return r.reply(250, i18n.Copied), r.copy(*from, arg)
}

func (r *fileRequest) copy(from copySource, arg string) error {
	name, err := r.absolute(arg)
	if err == nil {
		name, err = r.ResolveForCreate(name, r.Has)
	}
	if err != nil {
		return r.about(arg, err)
	}
	if err = r.Storage.Copy(from.Path, name); err != nil {
		names := reply.MoveNames(from.Name, r.echo(arg), err)
		return &reply.FileError{Names: reply.EntryNames(r.codec, names, err), Err: err}
	}
	return nil
}
