package list

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"iter"
	"path"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// listBuffer is the number of bytes of a listing that are sent at once, enough for some hundred entries.
const listBuffer = 32 << 10

// ErrNotDirectory reports a file although MLSD requires a directory (RFC 3659, 7.2.1).
var ErrNotDirectory = errors.New("not a directory")

// A Listing is the output of LIST, NLST, MLSD or STAT. It has a line for each entry of a directory, for a file, or
// for each entry that matches a pattern. Call [Listing.Open] to find the entries, and then [Listing.WriteLines]
// once.
type Listing struct {
	// Line appends the line of an entry without its line end. The name is already encoded for the client.
	Line func(b []byte, e Entry, name string) []byte

	client   *Client
	arg      string // pathname as sent by the client
	pattern  pattern
	filesToo bool          // arg may name a file
	heading  []fs.FileInfo // entries that do not come from the storage

	// Set by Open.
	file    bool
	dir     string // absolute pathname of the directory
	entries iter.Seq2[fs.FileInfo, error]
}

// NewLong returns the listing for LIST, and for STAT with a pathname: lines of ls -l. The client sent the pathname
// name as arg.
func NewLong(arg, name string, c *Client) *Listing {
	now := time.Now()
	return &Listing{
		arg: arg, pattern: parsePattern(arg, name), filesToo: true, client: c,
		Line: func(b []byte, e Entry, name string) []byte {
			return append(appendColumns(b, e.FileInfo, now), name...)
		},
	}
}

// NewNames returns the listing for NLST, which has only pathnames. The arguments are the same as in NewLong.
func NewNames(arg, name string, c *Client) *Listing {
	l := &Listing{arg: arg, pattern: parsePattern(arg, name), filesToo: true, client: c}
	l.Line = func(b []byte, _ Entry, name string) []byte { return l.appendPathname(b, name) }
	return l
}

// NewFacts returns the listing for MLSD of the directory name (RFC 3659, 7).
func NewFacts(facts Facts, name, workingDirectory string, c *Client) *Listing {
	return &Listing{
		heading: heading(facts, path.Clean(name), workingDirectory), client: c,
		Line: func(b []byte, e Entry, name string) []byte { return append(facts.Append(b, c, e), name...) },
	}
}

// IsFile reports whether an open listing lists a single file.
func (l *Listing) IsFile() bool { return l.file }

// Open finds the entries to list under a name that is spelled as in the storage. When it returns, the storage has
// read the first page. It returns the error of the storage, or [ErrNotDirectory].
func (l *Listing) Open(storage *view.Files, name string) error {
	err := l.openDirectory(storage, name)
	if errors.Is(err, fs.ErrNotExist) {
		err = l.openFile(storage, name)
	}
	if errors.Is(err, fs.ErrNotExist) && l.pattern.base != "" {
		err = l.openPattern(storage, path.Dir(name))
	}
	return err
}

func (l *Listing) openDirectory(storage *view.Files, name string) error {
	entries, err := storage.List(name)
	if err != nil {
		return err
	}
	l.dir, l.entries = path.Clean(name), entries
	return nil
}

func (l *Listing) openFile(storage *view.Files, name string) error {
	info, err := storage.StatFile(name)
	switch {
	case err != nil:
		return err
	case !l.filesToo:
		return ErrNotDirectory
	}
	l.file, l.dir = true, path.Dir(name)
	l.entries = func(yield func(fs.FileInfo, error) bool) { yield(info, nil) }
	return nil
}

// openPattern lists the names in a directory that match the pattern, both files and directories, like ls -d.
//
// If the directory exists but nothing matches, the list is empty and the reply is 226, like that from vsftpd. The
// session reads the directory while it sends the list, and a program that polls for *.csv would treat 550 as a
// failure. If the directory does not exist, the reply is 550.
func (l *Listing) openPattern(storage *view.Files, dir string) error {
	if err := l.openDirectory(storage, dir); err != nil {
		return err
	}
	l.arg = l.pattern.dir
	all := l.entries
	l.entries = func(yield func(fs.FileInfo, error) bool) {
		for info, err := range all {
			if err == nil && !l.pattern.match(info.Name()) {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
	return nil
}

// WriteLines writes the lines, page by page as the storage returns the entries.
func (l *Listing) WriteLines(w io.Writer) error {
	out := bufio.NewWriterSize(w, listBuffer)
	for info, err := range l.all() {
		if err != nil {
			_ = out.Flush() // so that the last line is complete
			return err
		}
		name, ok := l.client.Names.EncodeListName(l.dir, info.Name())
		if !ok {
			continue
		}
		line := l.Line(out.AvailableBuffer(), Entry{FileInfo: info, Dir: l.dir}, name)
		if _, err := out.Write(append(line, '\r', '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Blocks yields the lines of WriteLines in blocks of some hundred, followed by the error if there is one.
func (l *Listing) Blocks() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if err := l.WriteLines(yieldWriter(yield)); err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped ends a listing whose consumer has stopped.
var errStopped = errors.New("listing stopped")

// A yieldWriter yields the data written to it.
type yieldWriter func([]byte, error) bool

func (yield yieldWriter) Write(b []byte) (int, error) {
	if !yield(b, nil) {
		return 0, errStopped
	}
	return len(b), nil
}

// all yields the heading and the entries, each with a time.
func (l *Listing) all() iter.Seq2[fs.FileInfo, error] {
	return func(yield func(fs.FileInfo, error) bool) {
		var newest time.Time
		for _, info := range l.heading {
			if !yield(l.client.Dated(info, newest), nil) {
				return
			}
		}
		l.entries(func(info fs.FileInfo, err error) bool {
			if err != nil {
				return yield(nil, err)
			}
			if info.ModTime().After(newest) {
				newest = info.ModTime()
			}
			return yield(l.client.Dated(info, newest), nil)
		})
	}
}

// heading returns the directory itself and its parent, if MLSD shows the fact "type", which distinguishes them
// from the entries (RFC 3659, 7.5.1.2 and 7.5.1.4).
//
// Their names are "." and "..", because some clients take a full pathname for a subdirectory
// (github.com/jlaffaye/ftp/issues/107) and recurse forever. ".." is relative to the listed directory. "." would
// have to be relative to the working directory (RFC 3659, 7.3.1), so it is only shown if that is the listed
// directory.
func heading(facts Facts, name, workingDirectory string) []fs.FileInfo {
	var heading []fs.FileInfo
	if !facts.Has("type") {
		return nil
	}
	if name == workingDirectory {
		heading = append(heading, view.Directory(thisDirectory))
	}
	if name != "/" {
		heading = append(heading, view.Directory(parentDirectory))
	}
	return heading
}

// appendPathname appends a name that can be passed to RETR unchanged, prefixed with the pathname in the command
// (RFC 1123, 4.1.2.7).
func (l *Listing) appendPathname(b []byte, name string) []byte {
	b = append(b, pathname.EscapePathLineBreaks(l.arg)...)
	if l.file {
		return b
	}
	if l.arg != "" && !strings.HasSuffix(l.arg, "/") {
		b = append(b, '/')
	}
	return append(b, name...)
}
