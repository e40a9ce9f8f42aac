package control

import (
	"io/fs"

	"github.com/babelftp/babelftp/i18n"
)

// onPathname forwards a command whose argument is a pathname.
func (s *session) onPathname(arg string) {
	if s.verb == "RNTO" && !s.renaming {
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
		op.Stat = func(name string) (fs.FileInfo, error) { return s.orPendingUpload(name, op.Storage.StatFile) }
	}
	r := s.forward(s.verb, name)
	s.renaming = s.verb == "RNFR" && r.Code == 350
	s.send(r)
}

// cdup is CDUP, and XCUP, which the engine does not do.
func (s *session) cdup(string) {
	s.op.Stat = s.op.StatDir
	s.send(s.forward("CDUP", ""))
}

// mayRename says whether RNTO can succeed. The storage decides in the end, but RNFR should not ask for a new name that RNTO then refuses.
func (s *session) mayRename(name string) bool {
	return s.login.Rights == nil || s.login.Rights(name).Rename
}

// changesRoot says whether a command would make, remove or rename the root.
func changesRoot(verb string) bool {
	return verb != "CWD" && verb != "XCWD" && verb != "SIZE"
}
