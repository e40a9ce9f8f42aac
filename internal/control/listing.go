package control

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
)

// listBuffer is how many bytes of a listing are gathered before they are sent.
const listBuffer = 16 << 10

// A listing is what a listing command writes on its data connection.
type listing struct {
	filesToo bool // whether the pathname may be that of a file
	file     bool // whether it is
	line     func(b []byte, info fs.FileInfo, name string) []byte
	shown    func(dir, name string) (string, bool) // a name as the client reads it, false to leave it out
	dir      string                                // of the entries, where the storage has it
	entries  iter.Seq2[fs.FileInfo, error]
}

// openListing looks for what is to be listed. The engine asks before it opens
// the data connection; the first page is there when it is answered.
func (t *transfer) openListing(storage Storage, name string) (fs.FileInfo, error) {
	entries, err := storage.ReadDirSeq(name)
	if err == nil {
		t.listing.entries, t.listing.dir = entries, name
		return directory(path.Base(name)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	info, fileErr := storage.StatFile(name)
	if fileErr != nil {
		return nil, fileErr
	}
	if !t.listing.filesToo {
		return nil, errNotListable
	}
	t.listing.file, t.listing.dir = true, path.Dir(name)
	t.listing.entries = func(yield func(fs.FileInfo, error) bool) { yield(info, nil) }
	return directory(path.Base(name)), nil // the engine lists nothing itself
}

// writeTo writes the entries, page by page as the storage delivers them.
func (l *listing) writeTo(w io.Writer) error {
	out := bufio.NewWriterSize(w, listBuffer)
	for info, err := range l.entries {
		if err != nil {
			return err
		}
		name, ok := l.shown(l.dir, info.Name())
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

// list is LIST, NLST and MLSD.
func (s *session) list(arg string) {
	l := &listing{filesToo: s.verb != "MLSD", shown: s.listedName}
	if s.verb != "MLSD" {
		arg = withoutOptions(arg)
	}
	name, err := s.resolve(arg)
	if err != nil {
		s.fail(err)
		return
	}
	switch s.verb {
	case "LIST":
		now := time.Now()
		l.line = func(b []byte, info fs.FileInfo, name string) []byte { return appendListLine(b, info, name, now) }
	case "NLST":
		arg = toLines(arg)
		l.line = func(b []byte, _ fs.FileInfo, name string) []byte { return l.appendName(b, arg, name) }
	case "MLSD":
		facts := s.facts
		l.line = func(b []byte, info fs.FileInfo, name string) []byte {
			return append(append(appendFacts(b, facts, info), ' '), name...)
		}
	}
	s.runTransfer(&transfer{listing: l}, s.verb+" "+escapePathname(name))
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

// appendName shows a name so that it can be given to RETR as it is, behind the
// pathname that was asked for (RFC 1123 4.1.2.7).
func (l *listing) appendName(b []byte, asked, name string) []byte {
	if l.file {
		return append(b, asked...)
	}
	b = append(b, asked...)
	if asked != "" && !strings.HasSuffix(asked, "/") {
		b = append(b, '/')
	}
	return append(b, name...)
}

// The columns of LIST that stand for what S3 does not have.
const (
	listMode    = "-rw-r--r--"
	listDirMode = "drwxr-xr-x"
	listOwner   = " 1 ftp ftp "
)

// listYearAfter is the age from which ls shows the year instead of the time.
const listYearAfter = 180 * 24 * time.Hour

// appendListLine writes an entry as ls -l does, in UTC.
func appendListLine(b []byte, info fs.FileInfo, name string, now time.Time) []byte {
	mode, size := listMode, info.Size()
	if info.IsDir() {
		mode, size = listDirMode, 0
	}
	modified := info.ModTime().UTC()
	if modified.IsZero() {
		modified = time.Unix(0, 0).UTC() // S3 has no time for a directory
	}
	layout := "Jan _2 15:04"
	if age := now.Sub(modified); age > listYearAfter || age < -24*time.Hour {
		layout = "Jan _2  2006"
	}
	b = fmt.Appendf(b, "%s%s%13d ", mode, listOwner, size)
	return append(append(modified.AppendFormat(b, layout), ' '), name...)
}

// A fact is one of MLST's (RFC 3659 7.5).
type fact struct {
	name  string
	value func(b []byte, info fs.FileInfo) []byte // unchanged when there is none
}

// timeVal is RFC 3659 2.3's form of a time, in UTC.
const timeVal = "20060102150405"

// allFacts are the facts that this server knows, in the order of FEAT.
func allFacts() []fact {
	return []fact{
		{"type", func(b []byte, info fs.FileInfo) []byte {
			if info.IsDir() {
				return append(b, "dir"...)
			}
			return append(b, "file"...)
		}},
		{"size", func(b []byte, info fs.FileInfo) []byte {
			if info.IsDir() {
				return b
			}
			return fmt.Appendf(b, "%d", info.Size())
		}},
		{"modify", func(b []byte, info fs.FileInfo) []byte {
			if info.ModTime().IsZero() {
				return b
			}
			return info.ModTime().UTC().AppendFormat(b, timeVal)
		}},
	}
}

// appendFacts writes the facts of an entry: "type=file;size=3;".
func appendFacts(b []byte, facts []fact, info fs.FileInfo) []byte {
	for _, f := range facts {
		before := len(b)
		b = append(append(b, f.name...), '=')
		start := len(b)
		if b = f.value(b, info); len(b) == start {
			b = b[:before]
			continue
		}
		b = append(b, ';')
	}
	return b
}

// mlst is MLST (RFC 3659 7): one entry, on the control connection, with the
// pathname that was asked for.
func (s *session) mlst(arg string) {
	name, err := s.resolve(arg)
	if err != nil {
		s.fail(err)
		return
	}
	if arg == "" {
		arg = s.shown(name)
	}
	var info fs.FileInfo
	err = s.lookup(name, func(name string) (err error) {
		info, err = s.stats(name)
		return err
	})
	if err != nil {
		s.fail(err)
		return
	}
	entry := append(append(appendFacts([]byte(" "), s.facts, info), ' '), arg...)
	s.send(reply{250, []string{s.text(i18n.FileDetails), string(entry), s.text(i18n.DetailsEnd)}})
}

// stats looks for a file or a directory; the root needs no look.
func (s *session) stats(name string) (fs.FileInfo, error) {
	if name == "/" {
		return directory("/"), nil
	}
	return s.login.Storage.Stat(name)
}

// directory describes a directory of which no more is known than its name.
type directory string

func (d directory) Name() string     { return string(d) }
func (directory) Size() int64        { return 0 }
func (directory) Mode() fs.FileMode  { return fs.ModeDir | 0o755 }
func (directory) ModTime() time.Time { return time.Time{} }
func (directory) IsDir() bool        { return true }
func (directory) Sys() any           { return nil }
