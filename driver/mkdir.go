package driver

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/fileinfo"
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
	file, directory, err := f.lookup(key)
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
		file, directory, err := f.lookup(parent)
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

// lookup tells whether there are a file and a directory of a key. It takes one request where listings are sorted, unless more than a
// thousand keys stand between the two, such as "foo", "foo 1", "foo 2" ... "foo/".
func (f *Fs) lookup(key string) (file, directory bool, err error) {
	if !f.looksUpBoth() {
		return f.lookupBoth(key)
	}
	prefix := f.keys.Directory(key)
	page, err := f.bucket.List(f.ctx, s3api.Listing{Prefix: key, Delimiter: keys.Separator})
	if err != nil {
		return false, false, err
	}
	for _, v := range page.Versions {
		file = file || v.Key == key
	}
	for _, p := range page.Prefixes {
		directory = directory || p == prefix
	}
	if directory || page.Next == "" {
		return file, directory, nil
	}
	page, err = f.bucket.List(f.ctx, s3api.Listing{Prefix: prefix, Limit: 1})
	if err != nil {
		return false, false, err
	}
	return file, !page.Empty(), nil
}

// looksUpBoth tells whether one listing shows a file and a directory of a name.
func (f *Fs) looksUpBoth() bool {
	return f.bucket.Profile.SortedListings && !f.bucket.Profile.SlashPrefixes
}

// lookupBoth is lookup by one request for each, for servers that do not list the file first, or do not list what begins with its name.
func (f *Fs) lookupBoth(key string) (file, directory bool, err error) {
	found := func(_ *fileinfo.Info, err error) (bool, error) {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	}
	if file, err = found(f.statFile(key)); err == nil {
		directory, err = found(f.statDir(key))
	}
	return file, directory, err
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
