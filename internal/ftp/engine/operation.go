package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"sync/atomic"
	"syscall"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// An Operation is what one command asks of the storage, and what came of it.
type Operation struct {
	Context context.Context // of the command
	Storage *view.Files     // for the time of the context
	Names   *pathname.Resolver
	// Stat is what the command looks for; nil means a file or a directory.
	Stat func(name string) (fs.FileInfo, error)

	Transfer  *dataconn.Transfer // nil for what is none
	Announced int64              // size of the upload in bytes, from ALLO; 0 where it is not known
	Count     int64              // how many bytes of the file are sent; 0 for all

	Err     error  // of the storage or the login
	Path    string // the pathname in the storage of what the command names or creates
	Located string // Path, with a final slash if the command names a directory only
	File    File   // of the transfer, nil until it is open

	// whether the user can resume the upload, which has failed; the engine may close its file after its reply
	Kept atomic.Bool
}

// A File is what a transfer and its log need of the file that it reads or writes.
type File interface {
	io.Closer
	Stat() (fs.FileInfo, error)
	Abort(cause error)
}

// ErrPastEnd reports an offset beyond the end of the file.
var ErrPastEnd = errors.New("restart offset beyond the end of the file")

// Do does what the engine asks for. It keeps the error, because the engine keeps only its text. A panic is one too:
// the session ends with it.
func (o *Operation) Do(work func() error) error {
	err := panics.Catch(work)
	if err != nil {
		o.Err = err
		if o.Transfer != nil {
			o.Transfer.StorageFailed(err)
		}
	}
	return err
}

// apart is Do in a goroutine of its own. A request to S3 or a check of a password needs a deep stack, which the
// engine's own goroutine would keep while its session is idle.
func (o *Operation) apart(work func() error) error {
	return <-panics.Start(func() error { return o.Do(work) })
}

// Lookup tries the forms of a name and keeps where the storage has it.
func (o *Operation) Lookup(name string, try func(name string) error) error {
	located, err := o.Names.Lookup(name, try)
	if located != "" {
		o.Path, o.Located = path.Clean(located), located
	}
	return err
}

// ResolveForCreate is the pathname under which the command makes a file or
// directory. It keeps that.
func (o *Operation) ResolveForCreate(name string, stat func(name string) error) (string, error) {
	located, err := o.Names.ResolveForCreate(name, stat)
	if err == nil {
		o.Path, o.Located = path.Clean(located), located
	}
	return located, err
}

// Find looks for what Stat asks, in any form of its name.
func (o *Operation) Find(name string) (info fs.FileInfo, err error) {
	stat := o.Stat
	if stat == nil {
		stat = o.Storage.Stat
	}
	err = o.Lookup(name, func(name string) error {
		info, err = stat(name)
		return err
	})
	return info, err
}

// StatDir looks for a directory to go into, and tells a file from nothing when
// there is none.
func (o *Operation) StatDir(name string) (fs.FileInfo, error) {
	info, err := o.Storage.StatDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		if o.hasFile(path.Clean(name)) == nil {
			err = &fs.PathError{Op: "stat", Path: name, Err: syscall.ENOTDIR}
		}
	}
	return info, err
}

// makeDir makes a directory under the name that it is to have.
func (o *Operation) makeDir(name string, mkdir func(f *view.Files, name string) error) error {
	return o.apart(func() error {
		name, err := o.ResolveForCreate(name, o.hasDir)
		if err != nil {
			return err
		}
		return mkdir(o.Storage, name)
	})
}

// openReader opens the file of a download.
func (o *Operation) openReader(name string, offset int64) (file view.Reader, err error) {
	err = o.Lookup(name, func(name string) (err error) {
		file, err = o.Storage.OpenReader(name, offset)
		return err
	})
	return file, err
}

// openWriter opens the file of an upload.
func (o *Operation) openWriter(name string, flags int, offset int64) (file view.Writer, err error) {
	if name, err = o.ResolveForCreate(name, o.hasFile); err != nil {
		return nil, err
	}
	return o.Storage.OpenWriter(name, flags, offset)
}

// tellSize tells a download how many bytes it has from an offset. An open file knows its size without a request.
func (o *Operation) tellSize(offset int64) {
	info, err := o.File.Stat()
	if err != nil {
		return
	}
	size := max(0, info.Size()-offset)
	if o.Count > 0 {
		size = min(size, o.Count)
	}
	o.Transfer.SetSize(size)
}

// Has tells by an error whether there is a file or directory of a name, hasFile
// and hasDir whether there is one of them. So a new name is kept from looking
// like one that is there.
func (o *Operation) Has(name string) error     { _, err := o.Storage.Stat(name); return err }
func (o *Operation) hasFile(name string) error { _, err := o.Storage.StatFile(name); return err }
func (o *Operation) hasDir(name string) error  { _, err := o.Storage.StatDir(name); return err }
