package file

import (
	"io/fs"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// A Handle is what files open for reading, for writing and for listing have in common. They embed it, and define the
// methods of an afero.File that they offer. Its own methods are those of an afero.File, and each returns an error.
type Handle struct {
	FileName    string
	Unsupported error // of the operations not offered
	Closed      bool
}

// Refuse returns the error of an operation that the file does not offer. Of a closed file it returns fs.ErrClosed.
func (h *Handle) Refuse(op string) error {
	if h.Closed {
		return s3error.PathError(op, h.FileName, fs.ErrClosed)
	}
	return s3error.PathError(op, h.FileName, h.Unsupported)
}

// Name returns the name that the file was opened with.
func (h *Handle) Name() string { return h.FileName }

// Read is not offered.
func (h *Handle) Read([]byte) (int, error) { return 0, h.Refuse("read") }

// ReadAt is not offered.
func (h *Handle) ReadAt([]byte, int64) (int, error) { return 0, h.Refuse("read") }

// Seek is not offered.
func (h *Handle) Seek(int64, int) (int64, error) { return 0, h.Refuse("seek") }

// Write is not offered.
func (h *Handle) Write([]byte) (int, error) { return 0, h.Refuse("write") }

// WriteAt is not offered.
func (h *Handle) WriteAt([]byte, int64) (int, error) { return 0, h.Refuse("write") }

// WriteString is not offered.
func (h *Handle) WriteString(string) (int, error) { return 0, h.Refuse("write") }

// Truncate is not offered.
func (h *Handle) Truncate(int64) error { return h.Refuse("truncate") }

// Sync does nothing.
func (h *Handle) Sync() error { return nil }

// Readdir is not offered.
func (h *Handle) Readdir(int) ([]fs.FileInfo, error) { return nil, h.Refuse("readdir") }

// Readdirnames is not offered.
func (h *Handle) Readdirnames(int) ([]string, error) { return nil, h.Refuse("readdir") }
