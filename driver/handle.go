package driver

import (
	"io/fs"

	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// A Handle is what every open file has: its name, and an error for each operation of an afero.File that it does not offer.
type Handle struct {
	FileName    string
	Unsupported error // of the operations not offered
	Closed      bool
}

// Refuse is the error of an operation that the file does not offer, or of any once it is closed.
func (h *Handle) Refuse(op string) error {
	if h.Closed {
		return s3errors.PathError(op, h.FileName, fs.ErrClosed)
	}
	return s3errors.PathError(op, h.FileName, h.Unsupported)
}

// Name returns the name that the file was opened with.
func (h *Handle) Name() string { return h.FileName }

func (h *Handle) Read([]byte) (int, error)           { return 0, h.Refuse("read") }
func (h *Handle) ReadAt([]byte, int64) (int, error)  { return 0, h.Refuse("read") }
func (h *Handle) Seek(int64, int) (int64, error)     { return 0, h.Refuse("seek") }
func (h *Handle) Write([]byte) (int, error)          { return 0, h.Refuse("write") }
func (h *Handle) WriteAt([]byte, int64) (int, error) { return 0, h.Refuse("write") }
func (h *Handle) WriteString(string) (int, error)    { return 0, h.Refuse("write") }
func (h *Handle) Truncate(int64) error               { return h.Refuse("truncate") }
func (h *Handle) Sync() error                        { return nil }
func (h *Handle) Readdir(int) ([]fs.FileInfo, error) { return nil, h.Refuse("readdir") }
func (h *Handle) Readdirnames(int) ([]string, error) { return nil, h.Refuse("readdir") }
