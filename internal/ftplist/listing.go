package ftplist

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"iter"
	"path"
	"strings"

	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/vfs"
)

// ErrNotListable reports a file where a listing needs a directory.
var ErrNotListable = errors.New("not a directory")

// listBuffer is how many bytes of a listing are gathered before they are sent:
// those of some hundred entries.
const listBuffer = 32 << 10

// A Listing is what a listing command writes, on the data connection or for STAT.
type Listing struct {
	Asked    string        // the pathname as the client gave it
	Pattern  Pattern       // what Asked may mean when nothing has that name
	FilesToo bool          // whether the pathname may be that of a file
	Heading  []fs.FileInfo // entries of a directory that the storage does not know
	// EncodeName is a name as the client reads it, false to leave the entry out.
	EncodeName func(dir, name string) (string, bool)
	// Line appends the line of an entry, without its end.
	Line func(b []byte, info fs.FileInfo, name string) []byte

	Dir     string // after Open: the directory of the entries, absolute, where the storage has it
	file    bool   // whether the pathname is that of a file
	entries iter.Seq2[fs.FileInfo, error]
}

// Open looks for what is to be listed, and reads the first page of it.
func (l *Listing) Open(storage vfs.Storage, name string) error {
	err := l.openDirectory(storage, name)
	if errors.Is(err, fs.ErrNotExist) {
		err = l.openFile(storage, name)
	}
	if errors.Is(err, fs.ErrNotExist) && !l.Pattern.IsZero() {
		err = l.openPattern(storage, path.Dir(name))
	}
	return err
}

// openDirectory lists a directory.
func (l *Listing) openDirectory(storage vfs.Storage, name string) error {
	entries, err := storage.ReadDirSeq(name)
	if err != nil {
		return err
	}
	l.Dir, l.entries = name, entries
	return nil
}

// openFile lists a file.
func (l *Listing) openFile(storage vfs.Storage, name string) error {
	info, err := storage.StatFile(name)
	switch {
	case err != nil:
		return err
	case !l.FilesToo:
		return ErrNotListable
	}
	l.file, l.Dir = true, path.Dir(name)
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
func (l *Listing) openPattern(storage vfs.Storage, dir string) error {
	if err := l.openDirectory(storage, dir); err != nil {
		return err
	}
	l.Asked = l.Pattern.Dir
	all := l.entries
	l.entries = func(yield func(fs.FileInfo, error) bool) {
		for info, err := range all {
			if err == nil && !l.Pattern.Match(info.Name()) {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
	return nil
}

// WriteEntries writes the entries, page by page as the storage delivers them.
func (l *Listing) WriteEntries(w io.Writer) error {
	out := bufio.NewWriterSize(w, listBuffer)
	for info, err := range l.all() {
		if err != nil {
			_ = out.Flush() // no line stays without its end
			return err
		}
		name, ok := l.EncodeName(l.Dir, info.Name())
		if !ok {
			continue
		}
		line := l.Line(out.AvailableBuffer(), info, name)
		if _, err := out.Write(append(line, '\r', '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

// all is the heading and the entries.
func (l *Listing) all() iter.Seq2[fs.FileInfo, error] {
	return func(yield func(fs.FileInfo, error) bool) {
		for _, info := range l.Heading {
			if !yield(info, nil) {
				return
			}
		}
		l.entries(yield)
	}
}

// AppendPathname shows a name so that it can be given to RETR as it is, behind
// the pathname that was asked for (RFC 1123 4.1.2.7).
func (l *Listing) AppendPathname(b []byte, name string) []byte {
	b = append(b, pathname.EscapePathLineBreaks(l.Asked)...)
	if l.file {
		return b
	}
	if l.Asked != "" && !strings.HasSuffix(l.Asked, "/") {
		b = append(b, '/')
	}
	return append(b, name...)
}

// IsFile reports whether Open has found a file.
func (l *Listing) IsFile() bool { return l.file }
