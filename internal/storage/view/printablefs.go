package view

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/afero"
)

// printableFS creates no names with control characters (Unicode category Cc). What has such a name already can be
// read, renamed and removed.
type printableFS struct{ ObjectStorage }

// NewPrintableFS puts that rule before a storage. What it refuses is an EILSEQ.
func NewPrintableFS(storage ObjectStorage) ObjectStorage { return printableFS{storage} }

// printable looks at the whole pathname, because a file of S3 makes its directories.
func printable(op, name string) error {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return &fs.PathError{Op: op, Path: name, Err: syscall.EILSEQ}
	}
	return nil
}

func (p printableFS) Create(name string) (afero.File, error) {
	if err := printable("create", name); err != nil {
		return nil, err
	}
	return p.ObjectStorage.Create(name)
}

func (p printableFS) OpenFile(name string, flag int, mode fs.FileMode) (afero.File, error) {
	if err := printable("open", name); err != nil && flag&os.O_CREATE != 0 {
		return nil, err
	}
	return p.ObjectStorage.OpenFile(name, flag, mode)
}

func (p printableFS) OpenAt(name string, flag int, offset int64) (afero.File, error) {
	if err := printable("open", name); err != nil && flag&os.O_CREATE != 0 {
		return nil, err
	}
	return p.ObjectStorage.OpenAt(name, flag, offset)
}

func (p printableFS) Mkdir(name string, mode fs.FileMode) error {
	if err := printable("mkdir", name); err != nil {
		return err
	}
	return p.ObjectStorage.Mkdir(name, mode)
}

func (p printableFS) MkdirAll(name string, mode fs.FileMode) error {
	if err := printable("mkdir", name); err != nil {
		return err
	}
	return p.ObjectStorage.MkdirAll(name, mode)
}

func (p printableFS) Rename(oldname, newname string) error {
	if err := printable("rename", newname); err != nil {
		return err
	}
	return p.ObjectStorage.Rename(oldname, newname)
}

func (p printableFS) Copy(ctx context.Context, oldname, newname string) error {
	if err := printable("copy", newname); err != nil {
		return err
	}
	return p.ObjectStorage.Copy(ctx, oldname, newname)
}
