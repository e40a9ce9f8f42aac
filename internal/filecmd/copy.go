package filecmd

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/wire"
)

// Copy is SITE COPY: CopySource and CopyTo in one, for pathnames without SP. usage is its syntax as 501 shows it.
func Copy(usage string) Command {
	return func(r *Request, arg string) (wire.Reply, error) {
		from, to, _ := strings.Cut(arg, " ")
		if from == "" || to == "" || strings.Contains(to, " ") {
			return r.reply(501, i18n.Syntax, usage), nil
		}
		err := r.lookup(from, r.Has)
		if err == nil {
			err = r.copy(r.Path, to)
		}
		return r.reply(200, i18n.Copied), err
	}
}

// CopySource is SITE CPFR: the file or directory that SITE CPTO will copy, in the way of ProFTPD's mod_copy. The operation keeps its path.
func CopySource(r *Request, arg string) (wire.Reply, error) {
	return r.reply(350, i18n.CopyReady), r.lookup(arg, r.Has)
}

// CopyTo is SITE CPTO. S3 copies; nothing comes through this server.
func CopyTo(from string) Command {
	return func(r *Request, arg string) (wire.Reply, error) {
		return r.reply(250, i18n.Copied), r.copy(from, arg)
	}
}

func (r *Request) copy(from, arg string) error {
	name, err := r.Names.Resolve(r.WorkingDirectory, arg)
	if err != nil {
		return err
	}
	if name == "/" {
		return r.about(arg, fs.ErrPermission)
	}
	to, err := r.ResolveForCreate(name, r.Has)
	if err != nil {
		return err
	}
	if err = r.Storage.Copy(r.Context, from, to); errors.Is(err, fs.ErrExist) { // what is in the way has the new name
		return r.about(arg, err)
	}
	return err
}
