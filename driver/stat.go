package driver

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// Stat describes a file or, if no file with this name exists, a directory. It takes one request for a file and two for
// a directory; [Fs.StatFile] and [Fs.StatDir] take one. The modification time of a directory is zero unless it has a
// marker.
func (f *Fs) Stat(ctx context.Context, name string) (fs.FileInfo, error) {
	return f.stat(ctx, name, func(ctx context.Context, key string) (*file.Info, error) {
		if namesDirectory(name) {
			return f.findDirAndMarker(ctx, key)
		}
		info, err := f.statFile(ctx, key)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR) {
			return f.findDirAndMarker(ctx, key)
		}
		return info, err
	})
}

// StatFile describes a file with one request.
func (f *Fs) StatFile(ctx context.Context, name string) (fs.FileInfo, error) {
	return f.stat(ctx, name, func(ctx context.Context, key string) (*file.Info, error) {
		if namesDirectory(name) && !f.keys.IsRoot(key) {
			return nil, fs.ErrNotExist
		}
		return f.statFile(ctx, key)
	})
}

// statFile describes a file. If the file exists, the session no longer resumes a pending upload of it that was reported
// before.
func (f *Fs) statFile(ctx context.Context, key string) (*file.Info, error) {
	info, err := f.findFile(ctx, key)
	if err == nil {
		f.uploads.FileSeen(key)
	}
	return info, err
}

// StatDir describes a directory with one request, or two if listings are not sorted. The root always exists, which
// takes no request.
func (f *Fs) StatDir(ctx context.Context, name string) (fs.FileInfo, error) {
	return f.stat(ctx, name, f.findDirAndMarker)
}

// PendingUpload describes the interrupted upload of a file that this owner can resume. Its size is the number of bytes
// that S3 has. The error is fs.ErrNotExist if no such upload exists, if the file exists, or if a session is still
// working on the upload. It takes one request if nothing is pending.
//
// A file system that has reported an upload resumes it when the file is opened with this size as the offset, or when it
// is opened next with os.O_APPEND.
func (f *Fs) PendingUpload(ctx context.Context, name string) (fs.FileInfo, error) {
	return f.stat(ctx, name, func(ctx context.Context, key string) (*file.Info, error) {
		if namesDirectory(name) {
			return nil, fs.ErrNotExist
		}
		return f.uploads.Pending(ctx, key)
	})
}

// namesDirectory reports whether a name ends with a slash. Such a name means a directory, never a file.
func namesDirectory(name string) bool { return strings.HasSuffix(name, s3object.Separator) }

// refuseDirectory returns an error for a name with a final slash where a file is needed: EISDIR for a directory, and
// ENOTDIR if a file has the name without the slash.
func (f *Fs) refuseDirectory(ctx context.Context, name, key string) error {
	if !namesDirectory(name) || f.keys.IsRoot(key) { // the operation itself refuses the root
		return nil
	}
	file, directory, err := f.findBoth(ctx, key)
	switch {
	case err != nil:
		return err
	case directory:
		return syscall.EISDIR
	case file:
		return syscall.ENOTDIR
	}
	return fs.ErrNotExist
}

// stat returns the description that find returns for the key of a name.
func (f *Fs) stat(
	ctx context.Context, name string, find func(ctx context.Context, key string) (*file.Info, error),
) (fs.FileInfo, error) {
	var info *file.Info
	key, err := f.keys.Key(name)
	if err == nil {
		info, err = find(f.opts.withRetries(ctx), key)
	}
	if err != nil {
		return nil, s3error.PathError("stat", name, err)
	}
	return info, nil
}
