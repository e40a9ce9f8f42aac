package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// fileMode lets the group read the file, which contains names of users and files.
const fileMode = 0o640

// A File appends to the file at a path. If another program has moved or removed the file, the next Write creates a new
// one, so that logrotate does not have to send a signal. Several processes may append to the same file. A File is not
// safe for concurrent use.
type File struct {
	path string
	file *os.File // nil if closed
}

// NewFile returns a File. It does not open it.
func NewFile(path string) *File { return &File{path: path} }

// Open opens the file, so that the caller learns about errors. Write would open it too.
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

// current reports whether the open file is still the one at the path.
func (f *File) current() bool {
	if f.file == nil {
		return false
	}
	there, err := os.Stat(f.path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) // the error does not prove that the file was moved
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
