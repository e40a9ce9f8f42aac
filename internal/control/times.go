package control

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftplist"
	"github.com/babelftp/babelftp/internal/syntax"
	"github.com/babelftp/babelftp/internal/wire"
)

// mdtm is MDTM (RFC 3659 3): of files only.
func (s *session) mdtm(arg string) {
	var info fs.FileInfo
	err := s.lookup(arg, func(name string) (err error) {
		info, err = s.op.Storage.StatFile(name)
		return err
	})
	if err != nil {
		s.replyError(err)
		return
	}
	value, ok := ftplist.AppendTimeVal(nil, info.ModTime())
	if !ok {
		s.replyError(&fs.PathError{Op: "mdtm", Path: s.op.Path, Err: errors.ErrUnsupported})
		return
	}
	s.send(wire.NewReply(213, string(value)))
}

// mfmt is MFMT (draft-somers-ftp-mfxx 3): a time, one SP and a pathname.
func (s *session) mfmt(arg string) {
	t, pathname, ok := syntax.ParseMFMT(arg)
	if !ok {
		s.syntaxError()
		return
	}
	s.setModified(pathname, t)
}

// mff is MFF (draft-somers-ftp-mfxx 5): facts, one SP and a pathname. Only the time of modification can be changed; the time when an object
// was created is S3's own. A command with a fact that is refused changes nothing.
func (s *session) mff(arg string) {
	t, refused, pathname, ok := syntax.ParseMFF(arg)
	if !ok {
		s.syntaxError()
		return
	}
	if refused != nil {
		s.send(wire.NewReply(504, s.text(i18n.ParameterNotImplemented, "MFF")+" ("+syntax.Upper(strings.Join(refused, ", "))+")"))
		return
	}
	s.setModified(pathname, t)
}

// setModified sets the time of modification of a file and says which it is now.
func (s *session) setModified(pathname string, t time.Time) {
	err := s.lookup(pathname, func(name string) error { return s.op.Storage.Chtimes(name, t, t) })
	if err != nil {
		s.replyError(err)
		return
	}
	value, _ := ftplist.AppendTimeVal(nil, t) // it was read from one
	s.send(wire.NewReply(213, "Modify="+string(value)+"; "+s.echo(pathname)))
}
