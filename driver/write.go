package driver

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/upload"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// A Writer is a file that is open for writing. Write and ReadFrom add bytes; Close makes the file visible, all at once.
// Abort ends the upload, perhaps while another method runs: the file system stays as it was, and Close returns the
// cause. Stat describes the file as far as it is known, and after Close as S3 has stored it. Announce tells the size
// that the client has announced, before the first byte. Memory returns how many bytes of memory the part takes that is
// being filled. Kept reports after Close whether the upload was interrupted and its owner can resume it.
type Writer = upload.Writer

// An Inspection judges the bytes of one file that is written. It is for one goroutine.
type Inspection = upload.Inspection

// OpenWriter opens a file for an upload that begins offset bytes after its beginning. The end of ctx ends the upload.
//
// With an offset the object will hold its first offset bytes, and then what is written. The bytes that it has after
// these stay, unless [Options.Truncate] is set. With os.O_APPEND it will hold all of its bytes before what is written.
// With os.O_TRUNC, and with offset 0, it will hold only what is written.
//
// One request looks at the object if bytes of it stay, if it must exist (without os.O_CREATE), and if it must not
// (os.O_EXCL). Otherwise the first request sends a part, or comes with Close.
//
// If an upload of the owner is pending, OpenWriter resumes it, and offset must be its size. Otherwise the error is a
// [ResumeError]. If the file does not exist, os.O_APPEND resumes an upload too. [Fs.PendingUpload] must have reported
// it since this file system last opened the file for writing. OpenWriter appends to a file that exists, whatever is
// pending. os.O_TRUNC starts again.
//
// An offset beyond the end is an fs.ErrInvalid. OpenWriter does not check whether there is a directory of the name.
func (f *Fs) OpenWriter(ctx context.Context, name string, flag int, offset int64) (*Writer, error) {
	ctx = f.opts.withRetries(ctx)
	key, err := f.fileKey(ctx, name, offset)
	if errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0 {
		err = syscall.EISDIR
	}
	if err == nil {
		err = f.changeable()
	}
	var w *Writer
	if err == nil {
		w, err = f.uploads.Open(ctx, name, key, flag, offset)
	}
	if err != nil {
		return nil, s3error.PathError("open", name, err)
	}
	return w, nil
}

// fileKey returns the key of a file that is opened at an offset. The name of a directory is an error.
func (f *Fs) fileKey(ctx context.Context, name string, offset int64) (string, error) {
	key, err := f.keys.Key(name)
	switch {
	case err != nil:
	case f.keys.IsRoot(key):
		err = syscall.EISDIR
	case offset < 0:
		err = s3error.ErrInvalid
	default:
		err = f.refuseDirectory(ctx, name, key)
	}
	return key, err
}
