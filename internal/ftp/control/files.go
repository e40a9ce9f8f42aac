package control

import (
	"io/fs"
	"path"
	"strconv"
	"syscall"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
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
	s.op.fileName = codec.Echo(s.directory, arg)
	name, err := absolute(codec, s.directory, arg)
	if err != nil {
		return "", s.about(err)
	}
	s.op.Names.Sent(name)
	s.identity.decide(s.op.Names.Choice)
	return name.Path, nil
}

// about adds the name of the file that the command names, or both names of a rename, to an error.
func (s *session) about(err error) error {
	op := s.op
	if err == nil || op.fileName == "" {
		return err
	}
	names := []string{op.fileName}
	if op.Source != "" {
		names = reply.MoveNames(op.renaming.shown, op.fileName, err)
	}
	return &reply.FileError{Names: reply.EntryNames(s.identity.nameCodec(), names, err), Err: err}
}

// byLibrary makes a row for a command that the library performs on a pathname. done returns the reply to its success.
func byLibrary(verb string, done func(s *session) wire.Reply) func(*session, string) (wire.Reply, error) {
	return func(s *session, arg string) (wire.Reply, error) {
		name, err := s.absolute(arg)
		if err == nil {
			err = s.run(verb, name)
		}
		if err != nil {
			return wire.Reply{}, err
		}
		return done(s), nil
	}
}

// says makes the reply 250 with a message.
func says(id i18n.ID) func(*session) wire.Reply {
	return func(s *session) wire.Reply { return wire.NewReply(250, s.identity.text(id)) }
}

// directoryCreated is the reply to MKD.
func (s *session) directoryCreated() wire.Reply { return s.named(s.op.Path, i18n.DirectoryCreated) }

// named is 257, with a pathname first (RFC 959 4.2.2 and appendix II).
func (s *session) named(pathname string, id i18n.ID) wire.Reply {
	return wire.NewReply(257, wire.Quote(s.identity.nameCodec().EncodePath(pathname))+" "+s.identity.locale.Words(id))
}

// A renaming is the source that RNFR has named.
type renaming struct {
	shown string // the name that the client has given, as a reply repeats it
	path  string // absolute
	name  pathname.Name
}

// rnfr is RNFR. The right to rename is checked again by RNTO, but a client should learn here that it is missing.
func (s *session) rnfr(arg string) (wire.Reply, error) {
	name, err := s.absolute(arg)
	if err != nil {
		return wire.Reply{}, err
	}
	s.op.Stat = s.op.Storage.StatToRename
	if err = s.run("RNFR", name); err != nil {
		return wire.Reply{}, err
	}
	s.settings.renaming = &renaming{shown: s.op.fileName, path: name, name: s.op.Names.Known()}
	return s.reply(350, i18n.RenameReady)
}

// rnto is RNTO, which must follow RNFR.
func (s *session) rnto(arg string) (wire.Reply, error) {
	from := s.op.renaming
	if from == nil {
		return s.reply(503, i18n.RenameFromFirst)
	}
	s.op.Names.Sent(from.name)
	s.op.Source = from.path
	return byLibrary("RNTO", says(i18n.Renamed))(s, arg)
}

// cwd is CWD.
func (s *session) cwd(arg string) (wire.Reply, error) {
	name, err := s.absolute(arg)
	if err != nil {
		return wire.Reply{}, err
	}
	return s.changeDirectory(name)
}

// cdup is CDUP.
func (s *session) cdup(string) (wire.Reply, error) { return s.changeDirectory(path.Dir(s.directory)) }

// changeDirectory makes a directory the working directory, in the spelling that the storage has.
func (s *session) changeDirectory(name string) (wire.Reply, error) {
	s.op.Stat = s.op.StatDir
	if err := s.run("CWD", name); err != nil {
		return wire.Reply{}, err
	}
	s.directory = s.op.Path
	return s.reply(250, i18n.DirectoryChanged)
}

// pwd is PWD.
func (s *session) pwd(string) (wire.Reply, error) {
	return s.named(s.directory, i18n.CurrentDirectory), nil
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
	if err = s.run("SIZE", name); err != nil {
		return wire.Reply{}, err
	}
	return wire.NewReply(213, strconv.FormatInt(s.op.Info.Size(), 10)), nil // RFC 3659 4
}

// sizeOf finds what SIZE asks for: a file, or an upload that can be resumed.
func (s *session) sizeOf(name string) (fs.FileInfo, error) {
	info, err := s.request().statOrPending(name, s.op.Storage.StatFile)
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "size", Path: name, Err: syscall.EISDIR}
	}
	return info, err
}
