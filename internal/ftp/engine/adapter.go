package engine

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	ftpserver "github.com/fclairamb/ftpserverlib"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// engineFs is a login's storage as the engine sees it: that of the operation
// which is running. It undoes the escaping of pathnames and spends as few S3
// requests as the command allows.
type engineFs struct{ engine *Engine }

var (
	_ ftpserver.ClientDriver                      = (*engineFs)(nil)
	_ ftpserver.ClientDriverExtensionFileList     = (*engineFs)(nil)
	_ ftpserver.ClientDriverExtentionFileTransfer = (*engineFs)(nil)
	_ ftpserver.ClientDriverExtensionRemoveDir    = (*engineFs)(nil)
	_ ftpserver.FileTransfer                      = (*engineFile)(nil)
	_ ftpserver.FileTransferError                 = (*engineFile)(nil)
	_ io.ReaderFrom                               = (*engineFile)(nil)
	_ io.WriterTo                                 = (*engineFile)(nil)
)

// Stat looks for the file or directory of the command.
func (f *engineFs) Stat(name string) (info fs.FileInfo, err error) {
	op := f.engine.op
	err = op.apart(func() (err error) {
		info, err = op.Find(unescapeLine(name))
		return err
	})
	return info, err
}

// ReadDir gives the engine an empty list: the entries are written by the data
// connection when the engine makes the empty write that follows.
func (f *engineFs) ReadDir(string) ([]fs.FileInfo, error) { return nil, nil }

// GetHandle opens a file for a transfer.
func (f *engineFs) GetHandle(name string, flags int, offset int64) (ftpserver.FileTransfer, error) {
	op := f.engine.op
	file := &engineFile{op: op}
	err := op.Do(func() (err error) {
		if flags&os.O_CREATE != 0 {
			file.upload, err = op.openWriter(unescapeLine(name), flags, offset)
			file.File = file.upload
		} else {
			file.download, err = op.openReader(unescapeLine(name), offset)
			file.File = file.download
		}
		if offset > 0 && errors.Is(err, fs.ErrInvalid) {
			err = errors.Join(ErrPastEnd, err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	op.File = file.File
	op.Transfer.Opened(file.Abort)
	if file.upload != nil {
		op.Transfer.Memory = file.upload.Memory
		if op.Announced > 0 {
			file.upload.Announce(op.Announced)
		}
		return file, nil
	}
	op.tellSize(offset)
	file.sent = file.download
	if op.Count > 0 {
		file.sent = io.LimitReader(file.download, op.Count)
	}
	return file, nil
}

// Remove is DELE: files only.
func (f *engineFs) Remove(name string) error {
	op := f.engine.op
	return op.apart(func() error { return op.Lookup(unescapeLine(name), op.Storage.RemoveFile) })
}

// RemoveDir is RMD: empty directories only.
func (f *engineFs) RemoveDir(name string) error {
	op := f.engine.op
	return op.apart(func() error { return op.Lookup(unescapeLine(name), op.Storage.RemoveDir) })
}

// RemoveAll is SITE RMDIR.
func (f *engineFs) RemoveAll(name string) error {
	op := f.engine.op
	return op.apart(func() error {
		return op.Lookup(unescapeLine(name), func(name string) error {
			if err := op.Has(name); err != nil {
				return err
			}
			return op.Storage.RemoveAll(name)
		})
	})
}

// Mkdir is MKD.
func (f *engineFs) Mkdir(name string, _ os.FileMode) error {
	return f.engine.op.makeDir(unescapeLine(name), (*view.Files).Mkdir)
}

// MkdirAll is SITE MKDIR.
func (f *engineFs) MkdirAll(name string, _ os.FileMode) error {
	return f.engine.op.makeDir(unescapeLine(name), (*view.Files).MkdirAll)
}

// Rename is RNTO. What is renamed is no obstacle to a new spelling of its name.
func (f *engineFs) Rename(from, to string) error {
	op := f.engine.op
	return op.apart(func() error {
		return op.Lookup(unescapeLine(from), func(from string) error {
			to, err := op.ResolveForCreate(unescapeLine(to), func(name string) error {
				if path.Clean(name) == path.Clean(from) {
					return fs.ErrNotExist
				}
				return op.Has(name)
			})
			if err != nil {
				return err
			}
			return op.Storage.Rename(from, to)
		})
	})
}

// The session answers the commands that would call these.

func (*engineFs) Create(string) (afero.File, error) { return nil, errors.ErrUnsupported }
func (*engineFs) Open(string) (afero.File, error)   { return nil, errors.ErrUnsupported }
func (*engineFs) OpenFile(string, int, os.FileMode) (afero.File, error) {
	return nil, errors.ErrUnsupported
}
func (*engineFs) Chmod(string, os.FileMode) error            { return errors.ErrUnsupported }
func (*engineFs) Chown(string, int, int) error               { return errors.ErrUnsupported }
func (*engineFs) Chtimes(string, time.Time, time.Time) error { return errors.ErrUnsupported }

// Name implements afero.Fs. No caller reads it.
func (*engineFs) Name() string { return "babelftp" }

// engineFile is an open file of a transfer. It lets the storage's own ReadFrom
// and WriteTo move the data.
type engineFile struct {
	File
	op       *Operation
	upload   view.Writer // nil for a download
	download view.Reader // nil for an upload
	sent     io.Reader   // of what a download sends
	failed   bool
}

// Seek is what the engine asks after REST. The file begins there already.
func (f *engineFile) Seek(offset int64, _ int) (int64, error) { return offset, nil }

// Write uploads what the engine writes besides ReadFrom: no byte, after an upload of none.
func (f *engineFile) Write(b []byte) (n int, err error) {
	err = f.op.Do(func() (err error) {
		n, err = f.upload.Write(b)
		return err
	})
	return n, err
}

// asciiRead is how much is asked of the engine's ASCII conversion at once, in
// bytes. With room for two it never returns anything, and with less it
// panics (asciiconverter.go:41), so it must not see what the storage has left.
const asciiRead = 32 << 10

// ReadFrom uploads. What the engine has put before the data connection converts
// ASCII.
func (f *engineFile) ReadFrom(r io.Reader) (n int64, err error) {
	if _, direct := r.(*dataconn.Conn); !direct {
		r = struct{ io.Reader }{bufio.NewReaderSize(r, asciiRead)} // its WriteTo would hand on the reader below
	}
	err = f.op.Do(func() (err error) {
		n, err = io.Copy(f.upload, r)
		return err
	})
	return n, err
}

// WriteTo downloads.
func (f *engineFile) WriteTo(w io.Writer) (n int64, err error) {
	err = f.op.Do(func() (err error) {
		n, err = io.Copy(w, f.sent)
		return err
	})
	return n, err
}

// Read downloads in TYPE A, where the engine converts what it reads. It forgets an error that comes after a part of a
// line.
func (f *engineFile) Read(b []byte) (n int, err error) {
	ended := false
	err = f.op.Do(func() error {
		n, err = f.sent.Read(b)
		if ended = errors.Is(err, io.EOF); ended {
			return nil
		}
		return err
	})
	if ended {
		err = io.EOF
	}
	return n, err
}

// TransferError tells the file that its transfer failed, before Close.
func (f *engineFile) TransferError(err error) {
	f.failed = true
	f.op.Transfer.Break()
	f.Abort(err)
}

// Close commits an upload. After a failure, and after a download, its error is no news.
func (f *engineFile) Close() error {
	err := panics.Catch(f.File.Close)
	_, bug := errors.AsType[*panics.Error](err)
	if f.upload != nil {
		f.op.Kept.Store(f.upload.Kept())
	}
	commits := f.upload != nil && !f.failed
	switch {
	case bug, commits && err != nil:
		_ = f.op.Do(func() error { return err })
	case commits:
		f.op.Transfer.Stored()
	}
	return err
}
