package tree

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

// Mkdir makes a directory by writing its marker.
func (t *Tree) Mkdir(ctx context.Context, key string) error {
	if t.Keys.IsRoot(key) {
		return fs.ErrExist
	}
	file, directory, err := t.Both(ctx, key)
	if err == nil && (file || directory) {
		err = fs.ErrExist
	}
	if err != nil {
		return err
	}
	return t.mark(ctx, t.Keys.Directory(key))
}

// plainLevels is for how many levels MkdirAll is no operation on a whole directory. Each level takes two or three
// requests.
const plainLevels = 8

// MkdirAll makes a directory, and its parents where they are missing.
func (t *Tree) MkdirAll(ctx context.Context, key string) error {
	if t.Keys.IsRoot(key) {
		return nil
	}
	if strings.Count(key[len(t.Keys):], s3object.Separator) >= plainLevels {
		end, err := t.BeginOperation()
		if err != nil {
			return err
		}
		defer end()
	}
	path := string(t.Keys)
	for segment := range strings.SplitAfterSeq(key[len(path):], s3object.Separator) {
		path += segment
		parent := strings.TrimSuffix(path, s3object.Separator)
		file, directory, err := t.Both(ctx, parent)
		switch {
		case err != nil:
			return err
		case directory:
		case file && path != key:
			return s3error.ErrParentIsFile
		case file:
			return syscall.ENOTDIR
		default:
			if err := t.mark(ctx, t.Keys.Directory(parent)); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	return nil
}

// mark writes the marker of a directory, right after a look that has shown none. The error is fs.ErrExist where there
// is one by now. What it has stays.
func (t *Tree) mark(ctx context.Context, marker string) error {
	if len(marker) > s3object.MaxKeyBytes {
		return syscall.ENAMETOOLONG
	}
	a := t.Objects.OfMarker()
	c := s3api.Condition{Absent: t.Bucket.Profile.PutsOn(true)}
	_, err := t.Bucket.Put(ctx, marker, &a, c, bytes.NewReader(nil), nil)
	return c.Failed(err)
}
