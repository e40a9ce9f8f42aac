package control

import (
	"io/fs"
	"path"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftplist"
	"github.com/babelftp/babelftp/internal/syntax"
	"github.com/babelftp/babelftp/internal/vfs"
	"github.com/babelftp/babelftp/internal/wire"
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
		Names:       s.nameCodec(),
		Rights:      s.login.Rights,
		NoOverwrite: s.login.NoOverwrite,
		ObjectURI:   s.login.ObjectURI,
	}
}

// optsMLST is OPTS MLST: it chooses the facts of MLST and MLSD. Unknown ones are ignored, and the reply names what is left; after a wrong
// list nothing changes (RFC 3659 7.9).
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

// mlst is MLST (RFC 3659 7): one entry, on the control connection, with the pathname that was asked for.
func (s *session) mlst(arg string) {
	info, err := s.find(arg)
	if err != nil {
		s.replyError(err)
		return
	}
	shown := s.echo(arg)
	if arg == "" {
		shown = s.nameCodec().EncodePath(s.workingDirectory())
	}
	line := append(s.facts.Append([]byte(" "), s.listClient(), ftplist.Entry{FileInfo: info, Dir: path.Dir(s.op.Path)}), shown...)
	s.send(wire.NewReply(250, s.text(i18n.FileDetails), string(line), s.text(i18n.DetailsEnd)))
}

// find looks for a file, an upload that can be resumed or a directory; the root needs no look.
func (s *session) find(arg string) (info fs.FileInfo, err error) {
	err = s.lookup(arg, func(name string) (err error) {
		if name == "/" {
			info = vfs.Directory("/")
			return nil
		}
		info, err = s.orPendingUpload(name, s.op.Storage.Stat)
		return err
	})
	return info, err
}
