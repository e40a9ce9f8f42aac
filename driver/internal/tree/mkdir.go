package tree

import (
	"bytes"
	"context"
	"io/fs"
	"strings"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// Mkdir makes a directory by writing its marker.
func (f *Tree) Mkdir(ctx context.Context, key string) error {
	if f.Keys.IsRoot(key) {
		return fs.ErrExist
	}
	file, directory, err := f.Both(ctx, key)
	if err != nil {
		return err
	}
	if file || directory {
		return fs.ErrExist
	}
	return f.mark(ctx, f.Keys.Directory(key))
}

// MkdirAll makes a directory, and its parents where they are missing.
func (f *Tree) MkdirAll(ctx context.Context, key string) error {
	if f.Keys.IsRoot(key) {
		return nil
	}
	path := string(f.Keys)
	for segment := range strings.SplitAfterSeq(key[len(path):], keys.Separator) {
		path += segment
		parent := strings.TrimSuffix(path, keys.Separator)
		file, directory, err := f.Both(ctx, parent)
		switch {
		case err != nil:
			return err
		case directory:
		case file:
			return syscall.ENOTDIR
		default:
			if err := f.mark(ctx, f.Keys.Directory(parent)); err != nil {
				return err
			}
		}
	}
	return nil
}

// mark writes the marker of a directory.
func (f *Tree) mark(ctx context.Context, marker string) error {
	if len(marker) > keys.MaxBytes {
		return syscall.ENAMETOOLONG
	}
	a := f.Objects.OfMarker()
	_, err := f.Bucket.Put(ctx, marker, &a, s3api.Condition{}, bytes.NewReader(nil), nil)
	return err
}
