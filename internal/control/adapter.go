package control

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	ftpserver "github.com/fclairamb/ftpserverlib"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/internal/dataconn"
	"github.com/babelftp/babelftp/internal/vfs"
)

// engineFs is a login's storage as the engine sees it. It undoes the escaping
// of pathnames, spends as few S3 requests as the command allows, and notes the
// error of a failed operation in the session, because the engine keeps only
// its text.
type engineFs struct {
	vfs.Storage
	session *session
}

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

// note keeps an error for the reply and passes it on.
func (f *engineFs) note(err error) error {
	if err != nil {
		f.session.noted = err
	}
	return err
}

// Stat looks for what the command is about: CWD needs a directory, SIZE and
// MDTM a file, a listing its first page.
func (f *engineFs) Stat(name string) (info fs.FileInfo, err error) {
	err = f.session.lookup(unescapePathname(name), func(name string) (err error) {
		switch f.session.verb {
		case "CWD", "XCWD", "CDUP", "XCUP":
			info, err = f.statDir(name)
		case "SIZE":
			info, err = f.session.orPendingUpload(name, f.StatFile)
		case "LIST", "NLST", "MLSD":
			info, err = f.session.transfer.openListing(f.Storage, name)
		default:
			info, err = f.Storage.Stat(name)
		}
		return err
	})
	return info, f.note(err)
}

// statDir looks for a directory to go into, and tells a file from nothing when
// there is none.
func (f *engineFs) statDir(name string) (fs.FileInfo, error) {
	info, err := f.StatDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		if _, fileErr := f.StatFile(name); fileErr == nil {
			err = &fs.PathError{Op: "stat", Path: name, Err: syscall.ENOTDIR}
		}
	}
	return info, err
}

// ReadDir gives the engine an empty list: the entries are written by the data
// connection when the engine makes the empty write that follows.
func (f *engineFs) ReadDir(string) ([]fs.FileInfo, error) { return nil, nil }

// GetHandle opens a file for a transfer.
func (f *engineFs) GetHandle(name string, flags int, offset int64) (ftpserver.FileTransfer, error) {
	file, err := f.open(unescapePathname(name), flags, offset)
	if err != nil {
		if offset > 0 && (errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrInvalid)) {
			err = errors.Join(errPastEnd, err)
		}
		return nil, f.note(err)
	}
	if file, ok := file.(aborter); ok {
		f.session.transfer.Opened(file.Abort)
	}
	if file, ok := file.(announcer); ok && f.session.parameters.announced > 0 {
		file.Announce(f.session.parameters.announced)
	}
	return &engineFile{File: file, fs: f, count: f.session.transfer.count}, nil
}

func (f *engineFs) open(name string, flags int, offset int64) (file afero.File, err error) {
	if flags&os.O_CREATE == 0 {
		err = f.session.lookup(name, func(name string) (err error) {
			file, err = f.OpenAt(name, flags, offset)
			return err
		})
		return file, err
	}
	if name, err = f.session.resolveForCreate(name, f.hasFile); err != nil {
		return nil, err
	}
	return f.OpenAt(name, flags, offset)
}

// hasFile, hasDir and has are how a new name is kept from looking like one that
// is there.
func (f *engineFs) hasFile(name string) error { _, err := f.StatFile(name); return err }
func (f *engineFs) hasDir(name string) error  { _, err := f.StatDir(name); return err }
func (f *engineFs) has(name string) error     { _, err := f.Storage.Stat(name); return err }

// Remove is DELE: files only.
func (f *engineFs) Remove(name string) error {
	return f.note(f.session.lookup(unescapePathname(name), f.RemoveFile))
}

// RemoveDir is RMD: empty directories only.
func (f *engineFs) RemoveDir(name string) error {
	return f.note(f.session.lookup(unescapePathname(name), f.Storage.RemoveDir))
}

// RemoveAll is SITE RMDIR.
func (f *engineFs) RemoveAll(name string) error {
	return f.note(f.session.lookup(unescapePathname(name), func(name string) error {
		if err := f.has(name); err != nil {
			return err
		}
		return f.Storage.RemoveAll(name)
	}))
}

// Mkdir is MKD.
func (f *engineFs) Mkdir(name string, mode os.FileMode) error {
	name, err := f.session.resolveForCreate(unescapePathname(name), f.hasDir)
	if err == nil {
		err = f.Storage.Mkdir(name, mode)
	}
	return f.note(err)
}

// MkdirAll is SITE MKDIR.
func (f *engineFs) MkdirAll(name string, mode os.FileMode) error {
	name, err := f.session.resolveForCreate(unescapePathname(name), f.hasDir)
	if err == nil {
		err = f.Storage.MkdirAll(name, mode)
	}
	return f.note(err)
}

// Rename is RNTO. What is renamed is no obstacle to a new spelling of its name.
func (f *engineFs) Rename(from, to string) error {
	return f.note(f.session.lookup(unescapePathname(from), func(from string) error {
		to, err := f.session.resolveForCreate(unescapePathname(to), func(name string) error {
			if name == from {
				return fs.ErrNotExist
			}
			return f.has(name)
		})
		if err != nil {
			return err
		}
		return f.Storage.Rename(from, to)
	}))
}

// An announcer is a file that can make use of the size which ALLO has announced.
type announcer interface{ Announce(size int64) }

// An aborter is a file that can be aborted while another goroutine reads or
// writes it.
type aborter interface{ Abort(cause error) }

// engineFile is an open file of a transfer. It lets the storage's own ReadFrom
// and WriteTo move the data.
type engineFile struct {
	afero.File
	fs     *engineFs
	count  int64 // how many bytes are read, 0 for all
	failed bool
}

// asciiRead is how much is asked of the engine's ASCII conversion at once, in
// bytes. With room for two it returns nothing for ever, and with less it
// panics (asciiconverter.go:41), so it must not see what the storage has left.
const asciiRead = 32 << 10

// ReadFrom uploads. What the engine has put before the data connection converts
// ASCII.
func (f *engineFile) ReadFrom(r io.Reader) (int64, error) {
	if _, direct := r.(*dataconn.Conn); !direct {
		r = struct{ io.Reader }{bufio.NewReaderSize(r, asciiRead)} // its WriteTo would hand on the reader below
	}
	n, err := io.Copy(f.File, r)
	return n, f.fs.note(err)
}

// WriteTo downloads.
func (f *engineFile) WriteTo(w io.Writer) (int64, error) {
	var file io.Reader = f.File
	if f.count > 0 {
		file = io.LimitReader(file, f.count)
	}
	n, err := io.Copy(w, file)
	return n, f.fs.note(err)
}

// TransferError tells the file that its transfer failed, before Close.
func (f *engineFile) TransferError(err error) {
	f.failed = true
	if file, ok := f.File.(aborter); ok {
		file.Abort(err)
	}
}

// Close commits an upload. After a failure its error is no news.
func (f *engineFile) Close() error {
	err := f.File.Close()
	if f.failed {
		return err
	}
	return f.fs.note(err)
}
