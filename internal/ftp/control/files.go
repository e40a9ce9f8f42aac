package control

import (
	"path"
	"strconv"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// directoryChanged makes the directory of CWD the working directory, in the spelling that the storage has.
func directoryChanged(r *fileRequest) wire.Reply {
	r.directory = r.Path
	return r.named(250, r.Path, i18n.CurrentDirectory)
}

// cdup is CDUP, which is CWD of the parent.
func (s *session) cdup(string) (wire.Reply, error) {
	return s.byLibrary("CWD", path.Dir(s.settings.directory), directoryChanged)
}

// pwd is PWD.
func (s *session) pwd(string) (wire.Reply, error) {
	return s.request().named(257, s.settings.directory, i18n.CurrentDirectory), nil
}

// directoryCreated is the reply to MKD.
func directoryCreated(r *fileRequest) wire.Reply { return r.named(257, r.Path, i18n.DirectoryCreated) }

// renameReady keeps the source of RNFR for RNTO.
func renameReady(r *fileRequest) wire.Reply {
	r.renaming = &renaming{shown: r.shown, path: r.Name, name: r.Names.Known()}
	return r.reply(350, i18n.RenameReady)
}

// rnto is RNTO, which must follow RNFR.
func (s *session) rnto(arg string) (wire.Reply, error) {
	from := s.op.renaming
	if from == nil {
		return s.reply(503, i18n.RenameFromFirst)
	}
	s.op.Names.Sent(from.name)
	s.op.Source = from.path
	return byLibrary("RNTO", confirms(i18n.Renamed))(s, arg)
}

// size is SIZE. In TYPE A the file would have to be read.
func (s *session) size(arg string) (wire.Reply, error) {
	name, err := s.absolute(arg)
	if err != nil {
		return wire.Reply{}, err
	}
	if s.settings.parameters.ASCII {
		return s.reply(550, i18n.SizeInASCII)
	}
	return s.byLibrary("SIZE", name, func(r *fileRequest) wire.Reply {
		return wire.NewReply(213, strconv.FormatInt(r.Info.Size(), 10)) // RFC 3659 4
	})
}
