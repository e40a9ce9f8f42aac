package audit

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Files returns the audit log at a path and the files that logrotate made of it, such as audit.log.1, audit.log.2.gz
// and audit.log-20261101.
func Files(path string) (names []string, err error) {
	dir, base := filepath.Split(path)
	all, err := os.ReadDir(filepath.Clean(dir + "."))
	if err != nil {
		return nil, err
	}
	for _, entry := range all {
		rest, ok := strings.CutPrefix(entry.Name(), base)
		if ok && !entry.IsDir() && (rest == "" || rest[0] == '.' || rest[0] == '-') {
			names = append(names, filepath.Join(dir, entry.Name()))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s does not exist; the server creates it when it starts", path)
	}
	return names, nil
}

// OpenFile opens a file of an audit log. It decompresses the file if its name ends in .gz.
func OpenFile(name string) (io.ReadCloser, error) {
	file, err := os.Open(name)
	if err != nil || !isCompressed(name) {
		return file, err
	}
	unzip, err := gzip.NewReader(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &compressedFile{unzip, file}, nil
}

func isCompressed(name string) bool { return strings.HasSuffix(name, ".gz") }

// A compressedFile reads a file and decompresses it.
type compressedFile struct {
	*gzip.Reader
	file *os.File
}

// Close closes the file.
func (c *compressedFile) Close() error { return errors.Join(c.Reader.Close(), c.file.Close()) }

// A logFile is one of the files of an audit log.
type logFile struct {
	name string
	// id is a hash of the first line, so that a file is found again after it has grown, or was renamed or compressed.
	id    string
	first time.Time // time of the first line
	size  int64
}

func (f *logFile) compressed() bool { return isCompressed(f.name) }

// end returns the offset of the end of the decompressed file.
func (f *logFile) end() int64 {
	if f.compressed() {
		return atEnd
	}
	return f.size
}

// errNoLine reports that a file does not begin with an audit line.
var errNoLine = errors.New("does not begin with a line of an audit log")

// headSize is the number of bytes at the beginning of a file that identify it.
const headSize = 4 << 10

// newLogFile reads the beginning of a file.
func newLogFile(name string) (*logFile, error) {
	in, err := OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	head := make([]byte, headSize)
	n, err := io.ReadFull(in, head)
	if n == 0 && !errors.Is(err, io.EOF) {
		return nil, err
	}
	line, _, ended := bytes.Cut(head[:n], []byte("\n"))
	first, ok := timeOf(line)
	if !ok || !ended && n < headSize {
		return nil, errNoLine
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(line)
	return &logFile{name, hex.EncodeToString(id[:8]), first, info.Size()}, nil
}

// timeOf returns the time of a line, which may be incomplete. ok is false if the line is not an audit line.
func timeOf(line []byte) (at time.Time, ok bool) {
	text, ok := stringIn(line, `"time":"`)
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}

// logFiles returns the files of the audit log at a path, newest first, and the reasons why other files cannot be read.
// While logrotate compresses a file, both copies exist, and only the original is returned.
func logFiles(path string) (files []*logFile, problems []string, err error) {
	names, err := Files(path)
	if err != nil {
		return nil, nil, err
	}
	byID := map[string]*logFile{}
	for _, name := range names {
		f, err := newLogFile(name)
		switch {
		case errors.Is(err, errNoLine) && name == path, errors.Is(err, fs.ErrNotExist): // new, or renamed meanwhile
			continue
		case err != nil:
			problems = append(problems, fmt.Sprintf("%s was not searched: %v", name, err))
			continue
		}
		if other := byID[f.id]; other == nil || other.compressed() || !f.compressed() && f.size > other.size {
			byID[f.id] = f
		}
	}
	for _, f := range byID {
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b *logFile) int {
		return cmp.Or(b.first.Compare(a.first), cmp.Compare(a.name, b.name))
	})
	return files, problems, nil
}
