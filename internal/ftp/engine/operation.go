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

// An Operation is one command: what it needs, and what came of it. The session fills in the first part, and the second
// is written while the command runs.
type Operation struct {
	Context context.Context
	Storage *view.Files
	Names   *pathname.Resolver
	Verb    string // of the command for the library, such as "RETR" or "SITE MKDIR"
	Name    string // absolute pathname that the command names
	Source  string // absolute pathname that RNFR has named, for RNTO
	// Stat describes what CWD, SIZE or RNFR names, in one spelling of the name. RNTO needs none.
	Stat func(name string) (fs.FileInfo, error)

	Transfer  *dataconn.Transfer // nil for a command without a data connection
	Starting  func()             // called once, when the client may get 150 (see [dataconn.Transfer.Open])
	ASCII     bool               // TYPE A
	Offset    int64              // bytes, where the transfer begins in the file
	Count     int64              // bytes of a download, 0 for all
	Announced int64              // bytes of an upload according to ALLO, 0 if unknown

	Err     error       // of the storage
	Path    string      // the pathname under which the storage has what the command names or creates
	Located string      // Path, with a final slash if the command names a directory only
	Info    fs.FileInfo // what Stat has returned
	File    File        // of the transfer, nil until it is open

	// Kept reports whether the user can resume a failed upload. The library may close the file after its reply.
	Kept atomic.Bool
}

// A File is the file of a transfer.
type File interface {
	io.Closer
	Stat() (fs.FileInfo, error)
	Abort(cause error)
}

// ErrPastEnd reports an offset beyond the end of the file.
var ErrPastEnd = errors.New("restart offset beyond the end of the file")

// Do runs work and keeps its error, because the library passes on only the text. A panic becomes an error too, which
// ends the session.
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

// apart runs work in a goroutine of its own. A request to S3 needs a deep stack, which the library's goroutine would
// keep as long as the session is idle.
func (o *Operation) apart(work func() error) error {
	return <-panics.Start(func() error { return o.Do(work) })
}

// Lookup calls try with the spellings of a name until the storage has one, and keeps it.
func (o *Operation) Lookup(name string, try func(name string) error) error {
	located, err := o.Names.Lookup(name, try)
	o.locate(located)
	return err
}

// ResolveForCreate returns the pathname under which the command creates a file or directory, and keeps it.
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

// find looks for the file or directory of the command. The source of RNTO was found by RNFR.
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

// change lets the view change the file or directory of the command.
func (o *Operation) change(change func(f *view.Files, name string) error) error {
	return o.apart(func() error {
		return o.Lookup(o.Name, func(name string) error { return change(o.Storage, name) })
	})
}

// removeExisting is RemoveAll, which does not fail if there is nothing to remove.
func removeExisting(f *view.Files, name string) error {
	if _, err := f.Stat(name); err != nil {
		return err
	}
	return f.RemoveAll(name)
}

// rename moves a file or directory. The old name does not prevent another spelling of itself.
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

// Has reports by its error whether a file or directory exists; hasFile and hasDir ask for one of them.
func (o *Operation) Has(name string) error     { _, err := o.Storage.Stat(name); return err }
func (o *Operation) hasFile(name string) error { _, err := o.Storage.StatFile(name); return err }
func (o *Operation) hasDir(name string) error  { _, err := o.Storage.StatDir(name); return err }
