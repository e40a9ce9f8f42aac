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

// An Operation is one command. The session sets the first part of its fields, and the rest holds the results.
type Operation struct {
	Context context.Context
	Storage *view.Files
	Names   *pathname.Resolver
	Verb    string // command for the library, such as "RETR" or "SITE MKDIR"
	Name    string // absolute pathname in the command
	Source  string // absolute pathname from RNFR, for RNTO
	// Stat describes the target of CWD, SIZE or RNFR under one spelling of its name. RNTO does not need it.
	Stat func(name string) (fs.FileInfo, error)

	Transfer  *dataconn.Transfer // nil for a command without a data connection
	Starting  func()             // called once, when 150 may be sent (see [dataconn.Transfer.Open])
	ASCII     bool               // TYPE A
	Offset    int64              // where the transfer begins in the file, in bytes
	Count     int64              // bytes to download, 0 for all
	Announced int64              // size of an upload in bytes from ALLO, 0 if unknown

	Err     error       // error of the storage
	Path    string      // pathname in the storage of the file that the command uses or creates
	Located string      // Path, with a final slash if the command requires a directory
	Info    fs.FileInfo // result of Stat
	File    File        // open file of the transfer, or nil

	// Kept reports whether the user can resume a failed upload. It is atomic because the library may close the
	// file after its reply.
	Kept atomic.Bool
}

// A File is the file of a transfer.
type File interface {
	io.Closer
	Stat() (fs.FileInfo, error)
	Abort(cause error)
}

// ErrPastEnd reports an offset past the end of the file.
var ErrPastEnd = errors.New("restart offset beyond the end of the file")

// Do calls work and records its error, because the library only passes on the text of errors. A panic becomes an
// error that ends the session.
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

// apart calls work in its own goroutine, because a request to S3 needs a deep stack, which the goroutine of the
// library would keep while the session is idle.
func (o *Operation) apart(work func() error) error {
	return <-panics.Start(func() error { return o.Do(work) })
}

// Lookup calls try with each spelling of a name until one exists in the storage, and records that one in Path.
func (o *Operation) Lookup(name string, try func(name string) error) error {
	located, err := o.Names.Lookup(name, try)
	o.locate(located)
	return err
}

// ResolveForCreate returns and records the pathname under which the command creates a file or directory.
func (o *Operation) ResolveForCreate(name string, stat func(name string) error) (string, error) {
	located, err := o.Names.ResolveForCreate(name, stat)
	if err == nil {
		o.locate(located)
	}
	return located, err
}

func (o *Operation) locate(name string) {
	if name != "" {
		o.Path, o.Located = path.Clean(name), name
	}
}

// find describes the file or directory of the command. RNFR has already found the source of RNTO.
func (o *Operation) find() (fs.FileInfo, error) {
	if o.Stat == nil {
		return view.Directory(path.Base(o.Source)), nil
	}
	err := o.apart(func() error {
		return o.Lookup(o.Name, func(name string) (err error) {
			o.Info, err = o.Stat(name)
			return err
		})
	})
	return o.Info, err
}

// change applies a change to the file or directory of the command.
func (o *Operation) change(change func(f *view.Files, name string) error) error {
	return o.apart(func() error {
		return o.Lookup(o.Name, func(name string) error { return change(o.Storage, name) })
	})
}

// removeExisting is like RemoveAll, but returns an error if there is nothing to remove.
func removeExisting(f *view.Files, name string) error {
	if _, err := f.Stat(name); err != nil {
		return err
	}
	return f.RemoveAll(name)
}

// rename moves a file or directory. A name that only differs in its spelling from the old name counts as free.
func (o *Operation) rename() error {
	return o.apart(func() error {
		return o.Lookup(o.Source, func(from string) error {
			to, err := o.ResolveForCreate(o.Name, func(name string) error {
				if path.Clean(name) == path.Clean(from) {
					return fs.ErrNotExist
				}
				return o.Has(name)
			})
			if err != nil {
				return err
			}
			return o.Storage.Rename(from, to)
		})
	})
}

// StatDir describes a directory to change to. If a file has the name instead, it returns ENOTDIR.
func (o *Operation) StatDir(name string) (fs.FileInfo, error) {
	info, err := o.Storage.StatDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		if o.hasFile(path.Clean(name)) == nil {
			err = &fs.PathError{Op: "stat", Path: name, Err: syscall.ENOTDIR}
		}
	}
	return info, err
}

// makeDir creates a directory.
func (o *Operation) makeDir(mkdir func(f *view.Files, name string) error) error {
	return o.apart(func() error {
		name, err := o.ResolveForCreate(o.Name, o.hasDir)
		if err != nil {
			return err
		}
		return mkdir(o.Storage, name)
	})
}

// Has returns nil if a file or directory exists; hasFile and hasDir check for one of them.
func (o *Operation) Has(name string) error     { _, err := o.Storage.Stat(name); return err }
func (o *Operation) hasFile(name string) error { _, err := o.Storage.StatFile(name); return err }
func (o *Operation) hasDir(name string) error  { _, err := o.Storage.StatDir(name); return err }
