package control

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/filecmd"
	"github.com/babelftp/babelftp/internal/ftp/syntax"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// changing makes a row for a command by which the engine changes what a pathname names.
func changing(verb string) func(*session, string) {
	return func(s *session, arg string) {
		name, err := s.resolve(arg)
		if err == nil && name == "/" {
			err = fs.ErrPermission
		}
		if err != nil {
			s.replyError(err)
			return
		}
		s.send(s.forward(verb, name))
	}
}

// rnfr is RNFR. The storage decides in the end, but RNFR should not ask for a new name that RNTO then refuses.
func (s *session) rnfr(arg string) {
	name, err := s.resolve(arg)
	if err == nil && (name == "/" || s.login.Rights != nil && !s.login.Rights(name).Rename) {
		err = fs.ErrPermission
	}
	if err != nil {
		s.replyError(err)
		return
	}
	r := s.forward("RNFR", name)
	if r.Code == 350 {
		s.renaming = s.op.fileName
	}
	s.send(r)
}

// rnto is RNTO, which must follow RNFR.
func (s *session) rnto(arg string) {
	if s.op.renaming == "" {
		s.reply(503, i18n.RenameFromFirst)
		return
	}
	changing("RNTO")(s, arg)
}

// cwd is CWD.
func (s *session) cwd(arg string) {
	name, err := s.resolve(arg)
	if err != nil {
		s.replyError(err)
		return
	}
	s.op.Stat = s.op.StatDir
	s.send(s.forward("CWD", name))
}

// size is SIZE. In TYPE A the file would have to be read.
func (s *session) size(arg string) {
	name, err := s.resolve(arg)
	if err != nil {
		s.replyError(err)
		return
	}
	if s.parameters.ASCII {
		s.reply(550, i18n.SizeInASCII)
		return
	}
	s.op.Stat = s.sizeOf
	s.send(s.forward("SIZE", name))
}

// sizeOf is what SIZE looks for: a file, or an upload that can be resumed.
func (s *session) sizeOf(name string) (fs.FileInfo, error) {
	info, err := s.request().StatOrPending(name, s.op.Storage.StatFile)
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "size", Path: name, Err: syscall.EISDIR}
	}
	return info, err
}

// pwd is PWD.
func (s *session) pwd(string) { s.send(s.forward("PWD", "")) }

// cdup is CDUP, and XCUP, which the engine does not do.
func (s *session) cdup(string) {
	s.op.Stat = s.op.StatDir
	s.send(s.forward("CDUP", ""))
}

// request is the command as package filecmd gets it.
func (s *session) request() *filecmd.Request {
	return &filecmd.Request{
		Operation: &s.op.Operation, Login: s.login, Names: s.nameCodec(), WorkingDirectory: s.workingDirectory(),
		Locale:  s.locale,
		Started: s.server.started,
	}
}

// answer lets package filecmd answer a command, and returns false after an error.
func (s *session) answer(arg string, command filecmd.Command) bool {
	request := s.request()
	var r wire.Reply
	err := s.perform(func() (err error) {
		r, err = command(request, arg)
		return err
	})
	switch {
	case errors.Is(err, filecmd.ErrSyntax):
		s.syntaxError()
	case err != nil:
		s.replyError(err)
	default:
		s.send(r)
	}
	return err == nil
}

// onFile makes a row of a table.
func onFile(command filecmd.Command) func(*session, string) {
	return func(s *session, arg string) { s.answer(arg, command) }
}

// mlst is MLST.
func (s *session) mlst(arg string) { s.answer(arg, filecmd.MLST(s.facts)) }

// optsHash is OPTS HASH (draft-ietf-ftpext2-hash 3.2), which tells the algorithm, or chooses one.
func (s *session) optsHash(name string) {
	if name != "" {
		algorithm, known := syntax.FindHash(name)
		if !known {
			s.reply(501, i18n.OptionUnknown, "OPTS HASH")
			return
		}
		s.algorithm = algorithm
	}
	s.send(wire.NewReply(200, s.algorithm))
}

// hash is HASH (draft-ietf-ftpext2-hash 3): of the whole file, or of what RANG has chosen.
func (s *session) hash(arg string) {
	s.answer(arg, filecmd.HASH(s.algorithm, s.parameters.TakeRange()))
}
