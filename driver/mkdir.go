package driver

import (
	"bytes"
	"context"
	"io/fs"
	"strings"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// Mkdir makes a directory by writing its marker, and fails with fs.ErrExist where there is a file or a directory of the name. It
// takes two requests. The parents need not exist; the mode is not kept.
func (f *Fs) Mkdir(name string, _ fs.FileMode) error {
	key, err := f.keys.Key(name)
	if err == nil {
		err = f.mkdir(key)
	}
	return s3errors.PathError("mkdir", name, err)
}

func (f *Fs) mkdir(key string) error {
	if f.keys.IsRoot(key) {
		return fs.ErrExist
	}
	file, directory, err := f.find.Both(f.ctx, key)
	if err != nil {
		return err
	}
	if file || directory {
		return fs.ErrExist
	}
	return f.mark(f.ctx, f.keys.Directory(key))
}

// MkdirAll makes a directory, and its parents where they are missing. It fails with ENOTDIR where one of them is a file.
func (f *Fs) MkdirAll(name string, _ fs.FileMode) error {
	key, err := f.keys.Key(name)
	if err == nil {
		err = f.mkdirAll(key)
	}
	return s3errors.PathError("mkdir", name, err)
}

func (f *Fs) mkdirAll(key string) error {
	if f.keys.IsRoot(key) {
		return nil
	}
	path := string(f.keys)
	for segment := range strings.SplitAfterSeq(key[len(path):], keys.Separator) {
		path += segment
		parent := strings.TrimSuffix(path, keys.Separator)
		file, directory, err := f.find.Both(f.ctx, parent)
		switch {
		case err != nil:
			return err
		case directory:
		case file:
			return syscall.ENOTDIR
		default:
			if err := f.mark(f.ctx, f.keys.Directory(parent)); err != nil {
				return err
			}
		}
	}
	return nil
}

// mark writes the marker of a directory.
func (f *Fs) mark(ctx context.Context, marker string) error {
	if len(marker) > keys.MaxBytes {
		return syscall.ENAMETOOLONG
	}
	a := f.opts.Objects.OfMarker()
	_, err := f.bucket.Put(ctx, marker, &a, s3api.Condition{}, bytes.NewReader(nil), nil)
	return err
}
