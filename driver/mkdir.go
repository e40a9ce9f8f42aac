package driver

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// Mkdir makes a directory by writing its marker, which takes two requests. It fails with fs.ErrExist if a file or a
// directory with this name exists. The parents need not exist.
func (f *Fs) Mkdir(ctx context.Context, name string) error {
	return f.change(ctx, "mkdir", name, func(ctx context.Context, key string) error {
		if f.keys.IsRoot(key) {
			return fs.ErrExist
		}
		file, directory, err := f.findBoth(ctx, key)
		if err == nil && (file || directory) {
			err = fs.ErrExist
		}
		if err != nil {
			return err
		}
		return f.writeMarker(ctx, f.keys.Directory(key))
	})
}

// plainLevels is the number of levels from which MkdirAll counts as an operation on a whole directory
// ([Options.BeginOperation]). Each level takes two or three requests.
const plainLevels = 8

// MkdirAll makes a directory and its missing parents. It fails with ENOTDIR if one of them is a file.
func (f *Fs) MkdirAll(ctx context.Context, name string) error {
	return f.change(ctx, "mkdir", name, func(ctx context.Context, key string) error {
		if f.keys.IsRoot(key) {
			return nil
		}
		if strings.Count(key[len(f.keys):], s3object.Separator) >= plainLevels {
			end, err := f.opts.BeginOperation()
			if err != nil {
				return err
			}
			defer end()
		}
		path := string(f.keys)
		for segment := range strings.SplitAfterSeq(key[len(path):], s3object.Separator) {
			path += segment
			parent := strings.TrimSuffix(path, s3object.Separator)
			file, directory, err := f.findBoth(ctx, parent)
			switch {
			case err != nil:
				return err
			case directory:
			case file && path != key:
				return s3error.ErrParentIsFile
			case file:
				return syscall.ENOTDIR
			default:
				if err := f.writeMarker(ctx, f.keys.Directory(parent)); err != nil && !errors.Is(err, fs.ErrExist) {
					return err
				}
			}
		}
		return nil
	})
}

// writeMarker writes the marker of a directory that a previous request has not found. If another client has written one
// since, that marker stays, and the error is fs.ErrExist.
func (f *Fs) writeMarker(ctx context.Context, marker string) error {
	if len(marker) > s3object.MaxKeyBytes {
		return syscall.ENAMETOOLONG
	}
	a := f.opts.Objects.ForMarker()
	c := s3api.Condition{Absent: f.bucket.Profile.HasConditionalPut(true)}
	_, err := f.bucket.Put(ctx, marker, &a, c, bytes.NewReader(nil), s3api.Sums{})
	return c.Failed(err)
}
