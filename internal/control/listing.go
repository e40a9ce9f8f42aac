package control

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"iter"
	"path"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/ftplist"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/vfs"
)

// listBuffer is how many bytes of a listing are gathered before they are sent:
// those of some hundred entries.
const listBuffer = 32 << 10

// A listing is what a listing command writes on its data connection.
type listing struct {
	asked      string                                // the pathname as the client gave it
	pattern    ftplist.Pattern                       // what asked may mean when nothing is called so
	filesToo   bool                                  // whether the pathname may be that of a file
	file       bool                                  // whether it is
	dir        string                                // that the entries are in, absolute, where the storage has it
	heading    []fs.FileInfo                         // entries of a directory that the storage does not know
	encodeName func(dir, name string) (string, bool) // a name as the client reads it, false to leave it out
	line       func(b []byte, info fs.FileInfo, name string) []byte
	entries    iter.Seq2[fs.FileInfo, error]
}

// open looks for what is to be listed. The engine asks before it opens
// the data connection; the first page is there when it is answered.
func (l *listing) open(storage vfs.Storage, name string) error {
	err := l.openDirectory(storage, name)
	if errors.Is(err, fs.ErrNotExist) {
		err = l.openFile(storage, name)
	}
	if errors.Is(err, fs.ErrNotExist) && !l.pattern.IsZero() {
		err = l.openPattern(storage, path.Dir(name))
	}
	return err
}

// openDirectory lists a directory.
func (l *listing) openDirectory(storage vfs.Storage, name string) error {
	entries, err := storage.ReadDirSeq(name)
	if err != nil {
		return err
	}
	l.dir, l.entries = name, entries
	return nil
}

// openFile lists a file.
func (l *listing) openFile(storage vfs.Storage, name string) error {
	info, err := storage.StatFile(name)
	switch {
	case err != nil:
		return err
	case !l.filesToo:
		return errNotListable
	}
	l.file, l.dir = true, path.Dir(name)
	l.entries = func(yield func(fs.FileInfo, error) bool) { yield(info, nil) }
	return nil
}

// openPattern lists the names in a directory that match the pattern, files and
// directories alike, as ls -d does.
//
// Where the directory is there and nothing matches, the list is empty and the
// reply 226, as vsftpd's is: the directory is read while the list is
// sent, and a program that asks every minute whether there is a *.csv takes 550
// for a failure. A directory that is not there gives 550.
func (l *listing) openPattern(storage vfs.Storage, dir string) error {
	if err := l.openDirectory(storage, dir); err != nil {
		return err
	}
	l.asked = l.pattern.Dir
	all := l.entries
	l.entries = func(yield func(fs.FileInfo, error) bool) {
		for info, err := range all {
			if err == nil && !l.pattern.Match(info.Name()) {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
	return nil
}

// writeTo writes the entries, page by page as the storage delivers them.
func (l *listing) writeTo(w io.Writer) error {
	out := bufio.NewWriterSize(w, listBuffer)
	for info, err := range l.all() {
		if err != nil {
			_ = out.Flush() // no line stays without its end
			return err
		}
		name, ok := l.encodeName(l.dir, info.Name())
		if !ok {
			continue
		}
		line := l.line(out.AvailableBuffer(), info, name)
		if _, err := out.Write(append(line, '\r', '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

// all is the heading and the entries.
func (l *listing) all() iter.Seq2[fs.FileInfo, error] {
	return func(yield func(fs.FileInfo, error) bool) {
		for _, info := range l.heading {
			if !yield(info, nil) {
				return
			}
		}
		l.entries(yield)
	}
}

// list is LIST, NLST and MLSD.
func (s *session) list(arg string) {
	if s.verb != "MLSD" {
		arg = withoutOptions(arg)
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
		l.pattern, l.filesToo = ftplist.ParsePattern(arg, name), true
		l.line = func(b []byte, _ fs.FileInfo, name string) []byte { return l.appendPathname(b, name) }
	case "MLSD":
		client := s.factsClient()
		l.heading = s.heading(name)
		l.line = func(b []byte, info fs.FileInfo, name string) []byte {
			return append(s.facts.Append(b, client, ftplist.Entry{FileInfo: info, Dir: l.dir}), name...)
		}
	}
	op := s.op
	op.Stat = func(name string) (fs.FileInfo, error) {
		return vfs.Directory(path.Base(name)), l.open(op.Storage, name) // the engine lists nothing itself
	}
	s.runTransfer(&transfer{listing: l}, s.verb, name)
}

// newListing makes a listing of what a client has asked for.
func (s *session) newListing(asked string) *listing {
	return &listing{asked: asked, encodeName: s.codec().EncodeListName}
}

// longListing makes a listing that of LIST, and of STAT with a pathname.
func (s *session) longListing(l *listing, name string) {
	now := time.Now()
	l.pattern, l.filesToo = ftplist.ParsePattern(l.asked, name), true
	l.line = func(b []byte, info fs.FileInfo, name string) []byte {
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

// withoutOptions drops the options of ls that many clients send before the
// pathname, such as "-la". A name that begins with "-" can be given as "./-".
func withoutOptions(arg string) string {
	for strings.HasPrefix(arg, "-") {
		option, rest, _ := strings.Cut(arg, " ")
		if strings.Trim(option[1:], "aAlLFRrtSChd1") != "" {
			break
		}
		arg = rest
	}
	return arg
}

// appendPathname shows a name so that it can be given to RETR as it is, behind
// the pathname that was asked for (RFC 1123 4.1.2.7).
func (l *listing) appendPathname(b []byte, name string) []byte {
	b = append(b, pathname.EscapePathLineBreaks(l.asked)...)
	if l.file {
		return b
	}
	if l.asked != "" && !strings.HasSuffix(l.asked, "/") {
		b = append(b, '/')
	}
	return append(b, name...)
}
