package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// fileMode lets the group read the file: it holds names of users and files.
const fileMode = 0o640

// A File appends to the file of a path. When another program has moved or removed the file, the next Write makes a
// new one. So logrotate needs no signal. Several processes may append to one file. Its methods are for one goroutine.
type File struct {
	path string
	file *os.File // nil when closed
}

// NewFile opens nothing yet.
func NewFile(path string) *File { return &File{path: path} }

// Open opens the file. Write does so too, but only Open shows at once what is wrong.
func (f *File) Open() error {
	if f.current() {
		return nil
	}
	_ = f.Close()
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, fileMode)
	if err != nil {
		return err
	}
	f.file = file
	return nil
}

// current says whether the open file is the one of the path.
func (f *File) current() bool {
	if f.file == nil {
		return false
	}
	there, err := os.Stat(f.path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) // nothing says that the file has moved
	}
	open, err := f.file.Stat()
	return err == nil && os.SameFile(there, open)
}

// Write appends p.
func (f *File) Write(p []byte) (int, error) {
	if err := f.Open(); err != nil {
		return 0, err
	}
	n, err := f.file.Write(p)
	if err == nil && n < len(p) {
		err = fmt.Errorf("write %s: %w", f.path, io.ErrShortWrite)
	}
	return n, err
}

// Close closes the file. The next Write opens it again.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}
