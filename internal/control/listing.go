package control

import (
	"io/fs"
	"path"

	"github.com/babelftp/babelftp/internal/ftplist"
	"github.com/babelftp/babelftp/internal/syntax"
	"github.com/babelftp/babelftp/internal/vfs"
)

// list is LIST, NLST and MLSD.
func (s *session) list(arg string) {
	if s.verb != "MLSD" {
		arg = syntax.WithoutOptions(arg)
	}
	name, err := s.resolve(arg)
	if err != nil {
		s.replyError(err)
		return
	}
	var l *ftplist.Listing
	switch s.verb {
	case "LIST":
		l = ftplist.NewLong(arg, name, s.listClient())
	case "NLST":
		l = ftplist.NewNames(arg, name, s.listClient())
	case "MLSD":
		l = ftplist.NewFacts(s.facts, name, s.workingDirectory(), s.listClient())
	}
	// The engine asks before it opens the data connection, and lists nothing itself.
	op := s.op
	op.Stat = func(name string) (fs.FileInfo, error) {
		return vfs.Directory(path.Base(name)), l.Open(op.Storage, name)
	}
	s.runTransfer(&transfer{listing: l}, s.verb, name)
}

// listClient describes this client to a listing.
func (s *session) listClient() *ftplist.Client {
	return &ftplist.Client{
		Names:       s.codec(),
		Rights:      s.login.Rights,
		NoOverwrite: s.login.NoOverwrite,
		ObjectURI:   s.login.ObjectURI,
	}
}
