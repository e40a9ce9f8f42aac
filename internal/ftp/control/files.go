package control

import (
	"path"
	"strconv"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// directoryChanged makes the directory of CWD the working directory, spelled as in the storage.
func directoryChanged(r *fileRequest) wire.Reply {
	r.directory = r.Path
	return r.pathReply(250, r.Path, i18n.CurrentDirectory)
}

// cdup handles CDUP as a CWD to the parent directory.
func (s *session) cdup(string) (wire.Reply, error) {
	return s.byLibrary("CWD", path.Dir(s.state.directory), directoryChanged)
}

// pwd handles PWD.
func (s *session) pwd(string) (wire.Reply, error) {
	return s.request().pathReply(257, s.state.directory, i18n.CurrentDirectory), nil
}

// directoryCreated returns the reply to MKD.
func directoryCreated(r *fileRequest) wire.Reply {
	return r.pathReply(257, r.Path, i18n.DirectoryCreated)
}

// renameReady records the source of RNFR for RNTO.
func renameReady(r *fileRequest) wire.Reply {
	r.renaming = &renaming{shown: r.shown, path: r.Name, name: r.Names.Known()}
	return r.reply(350, i18n.RenameReady)
}

// rnto handles RNTO, which must follow RNFR.
func (s *session) rnto(arg string) (wire.Reply, error) {
	from := s.op.renaming
	if from == nil {
		return s.reply(503, i18n.RenameFromFirst)
	}
	s.op.Names.Sent(from.name)
	s.op.Source = from.path
	return byLibrary("RNTO", confirms(i18n.Renamed))(s, arg)
}

// size handles SIZE. It is refused in TYPE A, because the server would have to read the whole file to count line
// ends.
func (s *session) size(arg string) (wire.Reply, error) {
	name, err := s.absolute(arg)
	if err != nil {
		return wire.Reply{}, err
	}
	if s.state.parameters.ASCII {
		return s.reply(550, i18n.SizeInASCII)
	}
	return s.byLibrary("SIZE", name, func(r *fileRequest) wire.Reply {
		return wire.NewReply(213, strconv.FormatInt(r.Info.Size(), 10)) // RFC 3659 4
	})
}
