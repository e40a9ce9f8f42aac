package control

import (
	"io/fs"
	"path"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftplist"
	"github.com/babelftp/babelftp/internal/vfs"
	"github.com/babelftp/babelftp/internal/wire"
)

// optsMLST is OPTS MLST: it chooses the facts of MLST and MLSD. Unknown ones are
// ignored, and the reply names what is left; after a wrong list nothing changes
// (RFC 3659 7.9).
func (s *session) optsMLST(options string, hasOptions bool) {
	var facts ftplist.Facts
	if hasOptions {
		var ok bool
		if facts, ok = ftplist.ParseFacts(options); !ok {
			s.reply(501, i18n.OptionUnknown, "OPTS MLST")
			return
		}
	}
	s.facts = facts
	line := "MLST OPTS"
	if len(facts) > 0 {
		line += " " + facts.String()
	}
	s.send(wire.NewReply(200, line))
}

// mlst is MLST (RFC 3659 7): one entry, on the control connection, with the
// pathname that was asked for.
func (s *session) mlst(arg string) {
	name, err := s.resolve(arg)
	if err != nil {
		s.replyError(err)
		return
	}
	if arg == "" {
		arg = s.codec().EncodePath(name)
	}
	var info fs.FileInfo
	err = s.perform(func() (err error) {
		info, err = s.find(name)
		return err
	})
	if err != nil {
		s.replyError(err)
		return
	}
	line := append(s.facts.Append([]byte(" "), s.listClient(), ftplist.Entry{FileInfo: info, Dir: path.Dir(s.op.Path)}), arg...)
	s.send(wire.NewReply(250, s.text(i18n.FileDetails), string(line), s.text(i18n.DetailsEnd)))
}

// find looks for a file, an upload that can be resumed or a directory; the root
// needs no look.
func (s *session) find(name string) (fs.FileInfo, error) {
	op := s.op
	op.Stat = func(name string) (fs.FileInfo, error) {
		if name == "/" {
			return vfs.Directory("/"), nil
		}
		return s.orPendingUpload(name, op.Storage.Stat)
	}
	return op.Find(name)
}
