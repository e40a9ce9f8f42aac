package engine

import (
	"errors"
	"io"
	"io/fs"
	"time"

	ftpserver "github.com/fclairamb/ftpserverlib"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/internal/storage/view"
)

// files is the file system that the library uses for a login. It ignores the pathnames and offsets of the library,
// and performs the running operation.
type files struct{ conn *conn }

var (
	_ ftpserver.ClientDriver                      = files{}
	_ ftpserver.ClientDriverExtentionFileTransfer = files{}
	_ ftpserver.ClientDriverExtensionRemoveDir    = files{}
	_ ftpserver.FileTransfer                      = (*transferFile)(nil)
	_ ftpserver.FileTransferError                 = (*transferFile)(nil)
	_ io.ReaderFrom                               = (*transferFile)(nil)
	_ io.WriterTo                                 = (*transferFile)(nil)
)

// Stat is called for CWD, SIZE and RNFR.
func (f files) Stat(string) (fs.FileInfo, error) { return f.conn.op.find() }

// Remove is called for DELE.
func (f files) Remove(string) error { return f.conn.op.change((*view.Files).RemoveFile) }

// RemoveDir is called for RMD.
func (f files) RemoveDir(string) error { return f.conn.op.change((*view.Files).RemoveDir) }

// RemoveAll is called for SITE RMDIR.
func (f files) RemoveAll(string) error { return f.conn.op.change(removeExisting) }

// Mkdir is called for MKD.
func (f files) Mkdir(string, fs.FileMode) error { return f.conn.op.makeDir((*view.Files).Mkdir) }

// MkdirAll is called for SITE MKDIR.
func (f files) MkdirAll(string, fs.FileMode) error { return f.conn.op.makeDir((*view.Files).MkdirAll) }

// Rename is called for RNTO.
func (f files) Rename(string, string) error { return f.conn.op.rename() }

// GetHandle is called for RETR, STOR and APPE. The library sets the flags.
func (f files) GetHandle(_ string, flags int, _ int64) (ftpserver.FileTransfer, error) {
	return f.conn.op.open(flags)
}

// The library calls the following methods only for commands that the session handles itself.

func (files) Create(string) (afero.File, error) { return nil, errors.ErrUnsupported }
func (files) Open(string) (afero.File, error)   { return nil, errors.ErrUnsupported }
func (files) OpenFile(string, int, fs.FileMode) (afero.File, error) {
	return nil, errors.ErrUnsupported
}
func (files) Chmod(string, fs.FileMode) error            { return errors.ErrUnsupported }
func (files) Chown(string, int, int) error               { return errors.ErrUnsupported }
func (files) Chtimes(string, time.Time, time.Time) error { return errors.ErrUnsupported }

// Name implements afero.Fs.
func (files) Name() string { return "babelftp" }
