package control

import (
	"io/fs"
	"syscall"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// absolute returns the absolute pathname in UTF-8 for a command's argument. If the name shows the charset of the
// client, it decides the charset of the session.
func (s *session) absolute(arg string) (string, error) {
	return s.read(arg, pathname.Codec.Absolute)
}

// absoluteFile is absolute for the pathname of a file to create.
func (s *session) absoluteFile(arg string) (string, error) {
	return s.read(arg, pathname.Codec.AbsoluteFile)
}

// read reads a pathname with a method of the codec.
func (s *session) read(
	arg string, absolute func(c pathname.Codec, workingDirectory, arg string) (pathname.Name, error),
) (string, error) {
	codec := s.identity.nameCodec()
	s.op.fileName = codec.Echo(s.workingDirectory(), arg)
	name, err := absolute(codec, s.workingDirectory(), arg)
	if err != nil {
		return "", err
	}
	s.op.Names.Sent(name)
	s.identity.decide(s.op.Names.Choice)
	return name.Path, nil
}

// changing makes a row for a command by which the engine changes what a pathname names. The root is there, and stays.
func changing(verb string) func(*session, string) (wire.Reply, error) {
	return func(s *session, arg string) (wire.Reply, error) {
		name, err := s.absolute(arg)
		switch {
		case err != nil || name != "/":
		case verb == "MKD", verb == "SITE MKDIR":
			err = fs.ErrExist
		case verb == "DELE":
			err = syscall.EISDIR
		default:
			err = view.ErrFixed
		}
		if err != nil {
			return wire.Reply{}, err
		}
		return s.forward(verb, name)
	}
}

// rnfr is RNFR. The storage decides in the end, but RNFR should not ask for a new name that RNTO then refuses.
func (s *session) rnfr(arg string) (wire.Reply, error) {
	name, err := s.absolute(arg)
	switch {
	case err != nil:
	case name == "/" || s.identity.login.View.Fixed(name):
		err = view.ErrFixed
	case !s.identity.login.View.Rights(name).Rename:
		err = fs.ErrPermission
	}
	if err != nil {
		return wire.Reply{}, err
	}
	r, err := s.forward("RNFR", name)
	if r.Code == 350 {
		s.settings.renaming = &renaming{shown: s.op.fileName, name: s.op.Names.Known()}
	}
	return r, err
}

// A renaming is the source that RNFR has named.
type renaming struct {
	shown string // the name that the client has given, as a reply repeats it
	name  pathname.Name
}

// rnto is RNTO, which must follow RNFR.
func (s *session) rnto(arg string) (wire.Reply, error) {
	if s.op.renaming == nil {
		return s.reply(503, i18n.RenameFromFirst)
	}
	s.op.Names.Sent(s.op.renaming.name)
	return changing("RNTO")(s, arg)
}

// cwd is CWD.
func (s *session) cwd(arg string) (wire.Reply, error) {
	name, err := s.absolute(arg)
	if err != nil {
		return wire.Reply{}, err
	}
	s.op.Stat = s.op.StatDir
	return s.forward("CWD", name)
}

// size is SIZE. In TYPE A the file would have to be read.
func (s *session) size(arg string) (wire.Reply, error) {
	name, err := s.absolute(arg)
	if err != nil {
		return wire.Reply{}, err
	}
	if s.settings.next.parameters.ASCII {
		return s.reply(550, i18n.SizeInASCII)
	}
	s.op.Stat = s.sizeOf
	return s.forward("SIZE", name)
}

// sizeOf is what SIZE looks for: a file, or an upload that can be resumed.
func (s *session) sizeOf(name string) (fs.FileInfo, error) {
	info, err := s.request().statOrPending(name, s.op.Storage.StatFile)
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "size", Path: name, Err: syscall.EISDIR}
	}
	return info, err
}

// pwd is PWD. The engine is not asked, which may have ended while the client was idle.
func (s *session) pwd(string) (wire.Reply, error) {
	return s.named(s.workingDirectory(), i18n.CurrentDirectory), nil
}

// cdup is CDUP, and XCUP, which the engine does not do.
func (s *session) cdup(string) (wire.Reply, error) {
	s.op.Stat = s.op.StatDir
	return s.forward("CDUP", "")
}
