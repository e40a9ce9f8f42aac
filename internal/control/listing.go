package control

import (
	"io/fs"
	"path"
	"time"

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
	l := s.newListing(arg)
	switch s.verb {
	case "LIST":
		s.longListing(l, name)
	case "NLST":
		l.Pattern, l.FilesToo = ftplist.ParsePattern(arg, name), true
		l.Line = func(b []byte, _ fs.FileInfo, name string) []byte { return l.AppendPathname(b, name) }
	case "MLSD":
		client := s.factsClient()
		l.Heading = s.heading(name)
		l.Line = func(b []byte, info fs.FileInfo, name string) []byte {
			return append(s.facts.Append(b, client, ftplist.Entry{FileInfo: info, Dir: l.Dir}), name...)
		}
	}
	op := s.op
	op.Stat = func(name string) (fs.FileInfo, error) {
		return vfs.Directory(path.Base(name)), l.Open(op.Storage, name) // the engine lists nothing itself
	}
	s.runTransfer(&transfer{listing: l}, s.verb, name)
}

// newListing makes a listing of what a client has asked for.
func (s *session) newListing(asked string) *ftplist.Listing {
	return &ftplist.Listing{Asked: asked, EncodeName: s.codec().EncodeListName}
}

// longListing makes a listing that of LIST, and of STAT with a pathname.
func (s *session) longListing(l *ftplist.Listing, name string) {
	now := time.Now()
	l.Pattern, l.FilesToo = ftplist.ParsePattern(l.Asked, name), true
	l.Line = func(b []byte, info fs.FileInfo, name string) []byte {
		return append(ftplist.AppendColumns(b, info, now), name...)
	}
}

// heading is what MLSD shows of the directory itself and of its parent, where it
// shows the types that tell them from the entries (RFC 3659 7.5.1.2, 7.5.1.4).
//
// Their names are those that clients know: full pathnames are taken for
// directories inside by some (github.com/jlaffaye/ftp/issues/107), which never
// come to an end. ".." is relative to the directory that is listed, but "."
// would have to lead there from the working directory (RFC 3659 7.3.1), so it is
// shown of that one only.
func (s *session) heading(name string) []fs.FileInfo {
	var heading []fs.FileInfo
	if !s.facts.Has("type") {
		return nil
	}
	if name == s.workingDirectory() {
		heading = append(heading, vfs.Directory(ftplist.ThisDirectory))
	}
	if name != "/" {
		heading = append(heading, vfs.Directory(ftplist.ParentDirectory))
	}
	return heading
}
