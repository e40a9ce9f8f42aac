// Package openfile holds what open files have in common, whether they are read, written or listed. A file embeds a [Handle] and defines the
// methods of an afero.File that it offers.
package openfile

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
