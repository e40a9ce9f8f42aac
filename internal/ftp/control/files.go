package control

import (
	"errors"
	"io/fs"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/filecmd"
	"github.com/babelftp/babelftp/internal/ftp/syntax"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// onPathname forwards a command whose argument is a pathname.
func (s *session) onPathname(arg string) {
	if s.verb == "RNTO" && s.op.renaming == "" {
		s.reply(503, i18n.RenameFromFirst)
		return
	}
	name, err := s.resolve(arg)
	if err == nil && (name == "/" && changesRoot(s.verb) || s.verb == "RNFR" && !s.mayRename(name)) {
		err = fs.ErrPermission
	}
	if err != nil {
		s.replyError(err)
		return
	}
	if s.verb == "SIZE" && s.parameters.ASCII { // the file would have to be read
		s.reply(550, i18n.SizeInASCII)
		return
	}
	switch op := s.op; s.verb {
	case "CWD", "XCWD":
		op.Stat = op.StatDir
	case "SIZE":
		request := s.request()
		op.Stat = func(name string) (fs.FileInfo, error) { return request.StatOrPending(name, op.Storage.StatFile) }
	}
	r := s.forward(s.verb, name)
	if s.verb == "RNFR" && r.Code == 350 {
		s.renaming = s.op.fileName
	}
	s.send(r)
}

// pwd is PWD.
func (s *session) pwd(string) { s.send(s.forward("PWD", "")) }

// cdup is CDUP, and XCUP, which the engine does not do.
func (s *session) cdup(string) {
	s.op.Stat = s.op.StatDir
	s.send(s.forward("CDUP", ""))
}

// mayRename says whether RNTO can succeed. The storage decides in the end, but RNFR should not ask for a new name
// that RNTO then refuses.
func (s *session) mayRename(name string) bool {
	return s.login.Rights == nil || s.login.Rights(name).Rename
}

// changesRoot says whether a command would make, remove or rename the root.
func changesRoot(verb string) bool {
	return verb != "CWD" && verb != "XCWD" && verb != "SIZE"
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
