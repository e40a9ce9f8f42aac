package control

import (
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// siteCopy is SITE COPY: cpfr and cpto in one, for pathnames without SP.
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

// A copySource is what SITE CPTO copies.
type copySource struct {
	Path string // where the storage has it, with a final slash for a directory only
	Name string // that the client has given, as a reply repeats it
}

// cpfr is SITE CPFR: the file or directory that SITE CPTO will copy, in the way of ProFTPD's mod_copy. The
// operation keeps its path.
func cpfr(r *fileRequest, arg string) (wire.Reply, error) {
	return r.reply(350, i18n.CopyReady), r.lookup(arg, r.Has)
}

// cpto is SITE CPTO. S3 copies; nothing comes through this server.
func cpto(from copySource) fileCommand {
	return func(r *fileRequest, arg string) (wire.Reply, error) {
		return r.reply(250, i18n.Copied), r.copy(from, arg)
	}
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
